package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Of spec.healthCheckExprs of a Kustomization; absent ones never hold.
type expressions struct {
	InProgress string `json:"inProgress"`
	Failed     string `json:"failed"`
	Current    string `json:"current"`
}

// judgeByExpressions goes by Flux's RFC 9: an older observed generation is in progress, then inProgress, failed and
// current are asked in this order, and what none of them holds for is in progress. What cannot be evaluated, as of a
// field that is missing, is Unknown: Flux waits.
func judgeByExpressions(object map[string]any, file string) (status.Status, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	asked := expressions{}
	if err := json.Unmarshal(text, &asked); err != nil {
		return "", err
	}
	observed, known, err := unstructured.NestedInt64(object, "status", "observedGeneration")
	if err != nil {
		return "", err
	}
	generation, _, err := unstructured.NestedInt64(object, "metadata", "generation")
	if err != nil {
		return "", err
	}
	if known && observed != generation {
		return status.InProgressStatus, nil
	}
	for _, one := range []struct {
		expression string
		status     status.Status
	}{
		{asked.InProgress, status.InProgressStatus},
		{asked.Failed, status.FailedStatus},
		{asked.Current, status.CurrentStatus},
	} {
		if one.expression == "" {
			continue
		}
		program, err := programOf(one.expression)
		if err != nil {
			return "", err
		}
		// The top-level fields of the object are the variables.
		value, _, err := program.Eval(object)
		if err != nil {
			return status.UnknownStatus, nil
		}
		if holds, ok := value.Value().(bool); !ok {
			return "", fmt.Errorf("%s is no bool", one.expression)
		} else if holds {
			return one.status, nil
		}
	}
	return status.InProgressStatus, nil
}

// programOf reads an expression in the environment that Flux gives it.
func programOf(expression string) (cel.Program, error) {
	environment, err := cel.NewEnv(
		cel.HomogeneousAggregateLiterals(),
		cel.EagerlyValidateDeclarations(true),
		cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true),
		cel.OptionalTypes(),
		ext.Strings(),
		ext.Sets(),
		ext.Encoders(),
	)
	if err != nil {
		return nil, err
	}
	parsed, issues := environment.Parse(expression)
	if issues != nil {
		return nil, issues.Err()
	}
	return environment.Program(parsed)
}
