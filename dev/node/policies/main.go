// Enforces NetworkPolicies on the pods of one node: the part of kube-router that does so, by iptables and ipset. Its
// routes and its proxy of Services, of which most of it is made, have no work here. Takes the flags of kube-router.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/cloudnativelabs/kube-router/v2/pkg/controllers/netpol"
	"github.com/cloudnativelabs/kube-router/v2/pkg/healthcheck"
	"github.com/cloudnativelabs/kube-router/v2/pkg/options"
	"github.com/spf13/pflag"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	config := options.NewKubeRouterConfig()
	config.AddFlags(pflag.CommandLine)
	pflag.Parse()
	if err := run(config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run enforces until it is told to end. It serves /healthz once it knows what there is.
func run(config *options.KubeRouterConfig) error {
	told, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	access, err := clientcmd.BuildConfigFromFlags(config.Master, config.Kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	namespaces := factory.Core().V1().Namespaces().Informer()
	policies := factory.Networking().V1().NetworkPolicies().Informer()
	factory.Start(told.Done())
	factory.WaitForCacheSync(told.Done())
	iptables, ipsets, err := netpol.NewIPTablesHandlers(config)
	if err != nil {
		return err
	}
	controller, err := netpol.NewNetworkPolicyController(
		client, config, pods, policies, namespaces, &sync.Mutex{}, iptables, ipsets)
	if err != nil {
		return err
	}
	health, err := healthcheck.NewHealthController(config)
	if err != nil {
		return err
	}
	for _, watched := range []struct {
		informer cache.SharedIndexInformer
		handler  cache.ResourceEventHandler
	}{
		{pods, controller.PodEventHandler},
		{namespaces, controller.NamespaceEventHandler},
		{policies, controller.NetworkPolicyEventHandler},
	} {
		if _, err := watched.informer.AddEventHandler(watched.handler); err != nil {
			return err
		}
	}
	health.SetAlive()
	beats := make(chan *healthcheck.ControllerHeartbeat)
	var running sync.WaitGroup
	running.Add(3)
	go health.RunServer(told.Done(), &running)
	go health.RunCheck(beats, told.Done(), &running)
	go controller.Run(beats, told.Done(), &running)
	// What is enforced stays; a controller in the middle of its work has nobody to tell that it goes on.
	<-told.Done()
	return nil
}
