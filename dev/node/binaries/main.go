// One multi-call binary holding the programs that make this machine a node of the local cluster.
// The name it is called by picks the program.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	cri "k8s.io/cri-client/pkg"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

const connectTimeout = 10 * time.Second

func main() {
	name := filepath.Base(os.Args[0])
	switch name {
	case "kubelet":
		run(kubelet.NewKubeletCommand(context.Background()))
	case "kube-proxy":
		run(proxy.NewProxyCommand())
	case "kube-scheduler":
		run(scheduler.NewSchedulerCommand())
	case "coredns":
		coremain.Run()
	case "remove-pods":
		if err := removePods(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	default:
		fmt.Fprintf(os.Stderr, "unknown program %q: want kubelet, kube-proxy, kube-scheduler, coredns or remove-pods\n", name)
		os.Exit(2)
	}
}

func run(command *cobra.Command) {
	os.Exit(cli.Run(command))
}

// removePods ends all pods of the container runtime whose endpoint is the first argument, and removes them.
func removePods(ctx context.Context) error {
	if len(os.Args) != 2 {
		return fmt.Errorf("usage: remove-pods unix:///path/of/the/runtime.sock")
	}
	runtime, err := cri.NewRemoteRuntimeService(ctx, os.Args[1], connectTimeout, nil, false)
	if err != nil {
		return err
	}
	pods, err := runtime.ListPodSandbox(ctx, nil)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if err := runtime.StopPodSandbox(ctx, pod.Id); err != nil {
			return err
		}
		if err := runtime.RemovePodSandbox(ctx, pod.Id); err != nil {
			return err
		}
	}
	return nil
}
