// Command gvisor runs gVisor's TCP stack (netstack) as a contender, on one processor. Two stacks
// are joined by gVisor's pipe. The applications use the blocking connections of gVisor's adapter
// for Go's net package.
//
// The program reads one run per line from standard input, such as "bulk 100000 0". The words are
// the workload, the amount, and 1 to verify the bytes or 0. It answers with "ok", the processor
// time of this process in nanoseconds, and the number of segments in each direction. If a run
// fails, it answers with "error" and a message.
//
// With three arguments, the program runs a single stack on a packet socket instead (packet.go). The
// arguments are the name of an interface, the address of the stack, and the descriptor of a
// listener of the kernel.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"syscall"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/pipe"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

const (
	segment = 1460
	piece   = 64 << 10
	buffer  = 256 << 10
	period  = 251
	port    = 9
	nic     = 1
)

var (
	pattern = makePattern()
	remote  = tcpip.FullAddress{NIC: nic, Addr: address(2), Port: port}
)

func makePattern() []byte {
	bytes := make([]byte, piece+period)
	for i := range bytes {
		bytes[i] = byte(i % period)
	}
	return bytes
}

func address(number byte) tcpip.Address {
	return tcpip.AddrFrom4([4]byte{192, 0, 2, number})
}

// newHost returns a stack with the address own on one interface, and with the buffer sizes that all
// contenders share.
func newHost(own tcpip.Address, link stack.LinkEndpoint) (*stack.Stack, error) {
	host := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, arp.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
	})
	send := tcpip.TCPSendBufferSizeRangeOption{Min: 4096, Default: buffer, Max: buffer}
	receive := tcpip.TCPReceiveBufferSizeRangeOption{Min: 4096, Default: buffer, Max: buffer}
	// TIME-WAIT is short, because other contenders abort their sockets in TIME-WAIT.
	wait := tcpip.TCPTimeWaitTimeoutOption(2 * time.Millisecond)
	for _, option := range []tcpip.SettableTransportProtocolOption{&send, &receive, &wait} {
		if err := host.SetTransportProtocolOption(tcp.ProtocolNumber, option); err != nil {
			return nil, fmt.Errorf("an option is refused: %s", err)
		}
	}
	if err := host.CreateNIC(nic, link); err != nil {
		return nil, fmt.Errorf("no interface: %s", err)
	}
	with := tcpip.ProtocolAddress{
		Protocol:          ipv4.ProtocolNumber,
		AddressWithPrefix: tcpip.AddressWithPrefix{Address: own, PrefixLen: 24},
	}
	if err := host.AddProtocolAddress(nic, with, stack.AddressProperties{}); err != nil {
		return nil, fmt.Errorf("no address: %s", err)
	}
	host.SetRouteTable([]tcpip.Route{{Destination: header.IPv4EmptySubnet, NIC: nic}})
	return host, nil
}

// pair is two stacks that are joined by a pipe, and a listener of the right stack.
type pair struct {
	left, right *stack.Stack
	listener    *gonet.TCPListener
}

func newPair() (*pair, error) {
	leftEnd, rightEnd := pipe.New("\x02\x00\x00\x00\x00\x01", "\x02\x00\x00\x00\x00\x02", 1500)
	left, err := newHost(address(1), leftEnd)
	if err != nil {
		return nil, err
	}
	right, err := newHost(address(2), rightEnd)
	if err != nil {
		return nil, err
	}
	listener, err := gonet.ListenTCP(right, remote, ipv4.ProtocolNumber)
	return &pair{left, right, listener}, err
}

func (p *pair) open() (client, server *gonet.TCPConn, err error) {
	client, err = gonet.DialTCP(p.left, remote, ipv4.ProtocolNumber)
	if err != nil {
		return nil, nil, err
	}
	accepted, err := p.listener.Accept()
	if err != nil {
		return nil, nil, err
	}
	return client, accepted.(*gonet.TCPConn), nil
}

func (p *pair) bulk(amount uint64, verify bool) error {
	client, server, err := p.open()
	if err != nil {
		return err
	}
	return transfer(client, server, amount, verify)
}

// end is one end of a connection, which belongs to gVisor or to the kernel.
type end interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// transfer sends the data of amount segments from the client's end of a connection to the server's
// end, and closes both ends.
func transfer(client, server end, amount uint64, verify bool) error {
	total := amount * segment
	written := make(chan error, 1)
	go func() {
		for place := uint64(0); place < total; {
			length := min(piece, total-place)
			count, err := client.Write(pattern[place%period:][:length])
			if err != nil {
				written <- err
				return
			}
			place += uint64(count)
		}
		written <- client.CloseWrite()
	}()
	heard := make([]byte, piece)
	for place := uint64(0); place < total; {
		count, err := server.Read(heard)
		if err != nil {
			return err
		}
		if verify && !bytes.Equal(heard[:count], pattern[place%period:][:count]) {
			return fmt.Errorf("bytes have arrived that were not sent")
		}
		place += uint64(count)
	}
	if err := <-written; err != nil {
		return err
	}
	server.Close()
	return client.Close()
}

func (p *pair) pingPong(amount uint64) error {
	client, server, err := p.open()
	if err != nil {
		return err
	}
	echoed := make(chan error, 1)
	go func() {
		letter := make([]byte, 1)
		for i := uint64(0); i < amount; i++ {
			if _, err := server.Read(letter); err != nil {
				echoed <- err
				return
			}
			if _, err := server.Write(letter); err != nil {
				echoed <- err
				return
			}
		}
		echoed <- nil
	}()
	letter := []byte{7}
	for i := uint64(0); i < amount; i++ {
		if _, err := client.Write(letter); err != nil {
			return err
		}
		if _, err := client.Read(letter); err != nil {
			return err
		}
	}
	if err := <-echoed; err != nil {
		return err
	}
	server.Close()
	return client.Close()
}

// connect opens and closes amount connections, one after the other. The server closes first; the
// client closes when it has read the end of the stream.
func (p *pair) connect(amount uint64) error {
	rest := make([]byte, 1)
	for i := uint64(0); i < amount; i++ {
		client, server, err := p.open()
		if err != nil {
			return err
		}
		server.Close()
		if _, err := client.Read(rest); err != io.EOF {
			return fmt.Errorf("the server's end was not heard of: %v", err)
		}
		client.Close()
	}
	return nil
}

func (p *pair) run(work string, amount uint64, verify bool) error {
	switch work {
	case "bulk":
		return p.bulk(amount, verify)
	case "ping-pong":
		return p.pingPong(amount)
	case "connect":
		return p.connect(amount)
	}
	return fmt.Errorf("there is no work called %s", work)
}

// sent returns the number of segments that the left stack has sent, and the number that the right
// stack has sent.
func (p *pair) sent() (out, back uint64) {
	return p.left.Stats().TCP.SegmentsSent.Value(), p.right.Stats().TCP.SegmentsSent.Value()
}

// processorTime returns the nanoseconds that all threads of this process have spent in user and
// kernel mode; zero if the system does not report them.
func processorTime() int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return usage.Utime.Nano() + usage.Stime.Nano()
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == "gvisor.dev/gvisor" {
				return module.Version
			}
		}
	}
	return "of an unknown version"
}

// worker performs runs between two stacks (pair), or between a stack and the kernel (outside). sent
// returns the number of segments or frames in each direction.
type worker interface {
	run(work string, amount uint64, verify bool) error
	sent() (out, back uint64)
}

// begin returns a stack on a packet socket if the program has three arguments, else a pair of
// stacks.
func begin() (worker, error) {
	if len(os.Args) == 4 {
		return newOutside(os.Args[1], os.Args[2], os.Args[3])
	}
	return newPair()
}

func main() {
	runtime.GOMAXPROCS(1)
	pair, err := begin()
	if err != nil {
		fmt.Printf("error %s\n", err)
		os.Exit(1)
	}
	fmt.Printf("%s, %s\n", version(), runtime.Version())
	for {
		var work string
		var amount uint64
		var verify int
		if _, err := fmt.Scan(&work, &amount, &verify); err != nil {
			return
		}
		out, back := pair.sent()
		before := processorTime()
		err := pair.run(work, amount, verify != 0)
		taken := processorTime() - before
		nowOut, nowBack := pair.sent()
		if err != nil {
			fmt.Printf("error %s\n", err)
			continue
		}
		fmt.Printf("ok %d %d %d\n", taken, nowOut-out, nowBack-back)
	}
}
