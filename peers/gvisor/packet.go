// This file runs gVisor's stack on a packet socket with GSO frames. A socket of the kernel is at
// the other end of the veth pair.

package main

import (
	"fmt"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/link/fdbased"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
)

// queue is the size in bytes of the packet socket's send buffer and receive buffer. linerate's link
// has the same sizes.
const queue = 8 << 20

// outside is a stack on a packet socket, and a listener of the kernel that the stack can reach.
type outside struct {
	host     *stack.Stack
	listener *net.TCPListener
	kernel   tcpip.FullAddress
}

// newOutside opens a packet socket on the interface called name, and creates a stack with the
// address own on it. The listener of the kernel has the number descriptor.
func newOutside(name, own, descriptor string) (*outside, error) {
	number, err := strconv.Atoi(descriptor)
	if err != nil {
		return nil, err
	}
	generic, err := net.FileListener(os.NewFile(uintptr(number), "listener"))
	if err != nil {
		return nil, err
	}
	listener, ok := generic.(*net.TCPListener)
	if !ok {
		return nil, fmt.Errorf("descriptor %d is no listener of TCP", number)
	}
	at := listener.Addr().(*net.TCPAddr)
	socket, station, err := openSocket(name)
	if err != nil {
		return nil, err
	}
	// These are the settings of runsc: GSO frames are sent and received, the link computes the
	// checksums of sent frames, and received frames count as verified.
	link, err := fdbased.New(&fdbased.Options{
		FDs:                []int{socket},
		MTU:                1500,
		EthernetHeader:     true,
		Address:            tcpip.LinkAddress(station),
		PacketDispatchMode: fdbased.RecvMMsg,
		GSOMaxSize:         65536,
		RXChecksumOffload:  true,
		GRO:                true,
	})
	if err != nil {
		return nil, err
	}
	host, err := newHost(tcpip.AddrFrom4Slice(net.ParseIP(own).To4()), link)
	if err != nil {
		return nil, err
	}
	kernel := tcpip.FullAddress{
		NIC:  nic,
		Addr: tcpip.AddrFrom4Slice(at.IP.To4()),
		Port: uint16(at.Port),
	}
	return &outside{host, listener, kernel}, nil
}

// openSocket returns a packet socket on the interface called name, and the MAC address of the
// interface. Each frame on the socket has a virtio-net header.
func openSocket(name string) (int, net.HardwareAddr, error) {
	found, err := net.InterfaceByName(name)
	if err != nil {
		return 0, nil, err
	}
	all := (unix.ETH_P_ALL&0xff)<<8 | unix.ETH_P_ALL>>8
	socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err != nil {
		return 0, nil, fmt.Errorf("no packet socket: %w", err)
	}
	for _, option := range []struct{ level, name, value int }{
		{unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1},
		{unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1},
		{unix.SOL_PACKET, unix.PACKET_QDISC_BYPASS, 1},
		{unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, queue},
		{unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, queue},
	} {
		if err := unix.SetsockoptInt(socket, option.level, option.name, option.value); err != nil {
			return 0, nil, fmt.Errorf("an option of the packet socket is refused: %w", err)
		}
	}
	place := unix.SockaddrLinklayer{Protocol: uint16(all), Ifindex: found.Index}
	return socket, found.HardwareAddr, unix.Bind(socket, &place)
}

func (o *outside) run(work string, amount uint64, verify bool) error {
	ours, err := gonet.DialTCP(o.host, o.kernel, ipv4.ProtocolNumber)
	if err != nil {
		return err
	}
	kernels, err := o.listener.AcceptTCP()
	if err != nil {
		return err
	}
	switch work {
	case "packet-vnet-send":
		return transfer(ours, kernels, amount, verify)
	case "packet-vnet-receive":
		return transfer(kernels, ours, amount, verify)
	}
	return fmt.Errorf("there is no work called %s", work)
}

// sent returns the number of frames that the stack has sent, and the number that it has received.
func (o *outside) sent() (out, back uint64) {
	counted := o.host.NICInfo()[nic].Stats
	return counted.Tx.Packets.Value(), counted.Rx.Packets.Value()
}
