// Prints what kstatus says of the object, in JSON, on standard input: Current, InProgress, Failed, Terminating.
package main

import (
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

func main() {
	object := &unstructured.Unstructured{}
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		fail(err)
	}
	if err := object.UnmarshalJSON(text); err != nil {
		fail(err)
	}
	found, err := status.Compute(object)
	if err != nil {
		fail(err)
	}
	fmt.Println(found.Status)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
