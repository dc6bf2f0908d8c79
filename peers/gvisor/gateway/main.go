// Command gateway is a minimal gateway on gVisor's stack (netstack), for TCP over IPv4 only. Its
// arguments are the number of an inherited descriptor of a TUN device without offloads, and the MTU
// of the device in bytes.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"
)

const (
	nic = 1
	// handshakes is the maximum number of connections that are being opened at a time.
	handshakes = 1024
)

// dialer opens the connections to the servers. Go would enable keep-alive on them, which the other
// minimal gateways leave off. Go sets TCP_NODELAY by default.
var dialer = net.Dialer{KeepAlive: -1}

func main() {
	if err := serve(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve relays the connections that arrive on the TUN device. It returns only if the gateway cannot
// be started.
func serve(arguments []string) error {
	if len(arguments) != 2 {
		return fmt.Errorf("the arguments are the descriptor of a TUN device and its MTU")
	}
	descriptor, err := strconv.Atoi(arguments[0])
	if err != nil {
		return err
	}
	mtu, err := strconv.ParseUint(arguments[1], 10, 16)
	if err != nil {
		return err
	}
	// The link uses GSO frames on sockets only. GRO merges packets that were read one by one, but
	// leaves a checksum that is wrong for the merged packet, so it requires RXChecksumOffload. The
	// kernel of this machine has computed the checksums, which makes that safe.
	link, err := fdbased.New(&fdbased.Options{
		FDs:               []int{descriptor},
		MTU:               uint32(mtu),
		RXChecksumOffload: true,
		GRO:               true,
	})
	if err != nil {
		return err
	}
	host, err := newHost(link)
	if err != nil {
		return err
	}
	forwarder := tcp.NewForwarder(host, 0, handshakes, forward)
	host.SetTransportProtocolHandler(tcp.ProtocolNumber, forwarder.HandlePacket)
	select {}
}

// newHost returns a stack that accepts packets to all addresses, and sends from all addresses.
// Buffers have the sizes as shipped.
func newHost(link stack.LinkEndpoint) (*stack.Stack, error) {
	host := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
	})
	sack, control := tcpip.TCPSACKEnabled(true), tcpip.CongestionControlOption("reno")
	// In TIME-WAIT, the stack drops a SYN from the same port, because it looks for a listener and
	// not for a forwarder. With the default of a minute, one of 4,000 connections after a few
	// downloads took 70 seconds. Nothing delays packets on a TUN device, so none are late.
	wait := tcpip.TCPTimeWaitTimeoutOption(2 * time.Millisecond)
	for _, option := range []tcpip.SettableTransportProtocolOption{&sack, &control, &wait} {
		if err := host.SetTransportProtocolOption(tcp.ProtocolNumber, option); err != nil {
			return nil, fmt.Errorf("an option is refused: %s", err)
		}
	}
	if err := host.CreateNIC(nic, link); err != nil {
		return nil, fmt.Errorf("no interface: %s", err)
	}
	if err := host.SetPromiscuousMode(nic, true); err != nil {
		return nil, fmt.Errorf("no promiscuous mode: %s", err)
	}
	if err := host.SetSpoofing(nic, true); err != nil {
		return nil, fmt.Errorf("no foreign source addresses: %s", err)
	}
	host.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}})
	return host, nil
}

// forward connects to the server that a client wants to reach, and only then accepts the client's
// connection. Then it relays until both directions have ended.
func forward(request *tcp.ForwarderRequest) {
	id := request.ID()
	server := netip.AddrPortFrom(netip.AddrFrom4(id.LocalAddress.As4()), id.LocalPort)
	far, err := dialer.DialTCP(context.Background(), "tcp4", netip.AddrPort{}, server)
	if err != nil {
		request.Complete(true)
		return
	}
	defer far.Close()
	var queue waiter.Queue
	endpoint, refusal := request.CreateEndpoint(&queue)
	request.Complete(refusal != nil)
	if refusal != nil {
		return
	}
	endpoint.SocketOptions().SetDelayOption(false)
	client := gonet.NewTCPConn(&queue, endpoint)
	defer client.Close()
	ended := make(chan struct{})
	go func() {
		pour(far, client)
		close(ended)
	}()
	pour(client, far)
	<-ended
}

// end is one end of a connection, which belongs to gVisor or to the kernel.
type end interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// pour copies data until from has ended, and closes this direction of to. If an error occurs, it
// closes both connections, which ends the other direction too.
func pour(to, from end) {
	if _, err := io.Copy(to, from); err != nil {
		to.Close()
		from.Close()
		return
	}
	to.CloseWrite()
}
