// Prints how GitOps tools judge the object, in JSON, on standard input, a line each: kstatus alone, Flux with the CEL
// expressions of a Kustomization's healthCheckExprs, and Argo CD with a health script, whose message follows.
//
//	gitops FILE-OF-EXPRESSIONS FILE-OF-SCRIPT
//
// The file of expressions is a JSON object with inProgress, failed and current.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func main() {
	if len(os.Args) != 3 {
		fail(fmt.Errorf("usage: gitops FILE-OF-EXPRESSIONS FILE-OF-SCRIPT < OBJECT"))
	}
	if err := judge(os.Args[1], os.Args[2]); err != nil {
		fail(err)
	}
}

func judge(expressionsFile, scriptFile string) error {
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(text); err != nil {
		return err
	}
	found, err := status.Compute(object)
	if err != nil {
		return err
	}
	flux, err := judgeByExpressions(object.Object, expressionsFile)
	if err != nil {
		return err
	}
	health, message, err := judgeByScript(object.Object, scriptFile)
	if err != nil {
		return err
	}
	fmt.Printf("kstatus %s\nflux %s\nargocd %s %s\n", found.Status, flux, health, message)
	return nil
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
