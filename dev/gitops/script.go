package main

import (
	"context"
	"fmt"
	"os"
	"time"

	lua "github.com/yuin/gopher-lua"
)

// What Argo CD lets a script have unless it is told otherwise: no strings, no files, no time.
var libraries = map[string]lua.LGFunction{
	lua.LoadLibName: lua.OpenPackage,
	lua.BaseLibName: lua.OpenBase,
	lua.TabLibName:  lua.OpenTable,
}

const timeout = time.Second

// judgeByScript runs a health script as Argo CD does: the object is the global `obj`, the answer a table.
func judgeByScript(object map[string]any, file string) (health, message string, err error) {
	script, err := os.ReadFile(file)
	if err != nil {
		return "", "", err
	}
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range libraries {
		opening := lua.P{Fn: state.NewFunction(open), Protect: true}
		if err := state.CallByParam(opening, lua.LString(name)); err != nil {
			return "", "", err
		}
	}
	limited, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	state.SetContext(limited)
	state.SetGlobal("obj", luaValue(state, object))
	if err := state.DoString(string(script)); err != nil {
		return "", "", err
	}
	answer, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return "", "", fmt.Errorf("the script returned a %s, not a table", state.Get(-1).Type())
	}
	return answer.RawGetString("status").String(), answer.RawGetString("message").String(), nil
}

func luaValue(state *lua.LState, value any) lua.LValue {
	switch known := value.(type) {
	case bool:
		return lua.LBool(known)
	case string:
		return lua.LString(known)
	case int64:
		return lua.LNumber(known)
	case float64:
		return lua.LNumber(known)
	case []any:
		table := state.CreateTable(len(known), 0)
		for _, item := range known {
			table.Append(luaValue(state, item))
		}
		return table
	case map[string]any:
		table := state.CreateTable(0, len(known))
		for key, item := range known {
			table.RawSetString(key, luaValue(state, item))
		}
		return table
	}
	return lua.LNil
}
