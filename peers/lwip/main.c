/* lwIP as a contender. Two interfaces of one instance are joined by two rings of frames in memory.
 * The applications use the raw API, and everything runs in one thread.
 *
 * The program reads one run per line from standard input, such as "bulk 100000 0". The words are
 * the workload, the amount, and 1 to verify the bytes or 0. It answers with "ok", the processor
 * time of this thread in nanoseconds, and the number of frames in each direction. If a run fails,
 * it answers with "error" and a message. */

#include "lwip/etharp.h"
#include "lwip/init.h"
#include "lwip/ip.h"
#include "lwip/netif.h"
#include "lwip/tcp.h"
#include "lwip/timeouts.h"
#include "netif/ethernet.h"
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { FRAME = 1514, BATCH = 64, PIECE = 64 << 10, SEGMENT = 1460, PERIOD = 251, PORT = 9 };

/* The ring of the frames in flight to one end. */
struct lane {
  uint8_t frames[BATCH][FRAME];
  size_t lengths[BATCH];
  unsigned first, count;
  uint64_t carried;
};

/* One interface, with the rings from and to the other interface. */
struct end {
  struct netif netif;
  struct lane *from_other, *to_other;
};

static struct lane to_left, to_right;
static struct end left, right;
static struct tcp_pcb *listener;

/* The state of both applications. `heard` holds received data, `read_bytes` counts these data, and
 * `trouble` is the message of a failed run. */
static uint8_t pattern[PIECE + PERIOD], heard[FRAME];
static struct tcp_pcb *client, *server;
static int connected, closed_by_peer, failed, verify;
static uint64_t read_bytes, echoed;
static const char *trouble;

static uint64_t nanoseconds(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Sends a frame for the interface: copies it to the next free place of the ring. */
static err_t link_output(struct netif *netif, struct pbuf *p) {
  struct lane *lane = ((struct end *)netif->state)->to_other;
  if (lane->count == BATCH || p->tot_len > FRAME) return ERR_BUF;
  unsigned place = (lane->first + lane->count) % BATCH;
  lane->lengths[place] = pbuf_copy_partial(p, lane->frames[place], p->tot_len, 0);
  lane->count++;
  lane->carried++;
  return ERR_OK;
}

/* Receives at most `budget` frames: copies each frame to a buffer of lwIP, and passes it on. */
static void receive(struct end *end, unsigned budget) {
  struct lane *lane = end->from_other;
  for (; lane->count > 0 && budget > 0; budget--) {
    size_t length = lane->lengths[lane->first];
    struct pbuf *p = pbuf_alloc(PBUF_RAW, (u16_t)length, PBUF_RAM);
    if (p == NULL) {
      failed = 1, trouble = "no buffer for a frame";
      return;
    }
    pbuf_take(p, lane->frames[lane->first], (u16_t)length);
    lane->first = (lane->first + 1) % BATCH;
    lane->count--;
    if (end->netif.input(p, &end->netif) != ERR_OK) pbuf_free(p);
  }
}

static err_t no_ip6(struct netif *netif, struct pbuf *p, const ip6_addr_t *address) {
  (void)netif, (void)p, (void)address;
  return ERR_IF;
}

static err_t set_up(struct netif *netif) {
  netif->name[0] = 'm', netif->name[1] = 'e';
  netif->mtu = 1500;
  netif->hwaddr_len = ETH_HWADDR_LEN;
  netif->hwaddr[0] = 2, netif->hwaddr[5] = netif->state == &left ? 1 : 2;
  netif->flags =
      NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_ETHERNET | NETIF_FLAG_LINK_UP;
  netif->output = etharp_output;
  netif->output_ip6 = no_ip6;
  netif->linkoutput = link_output;
  return ERR_OK;
}

static void add(struct end *end, int number, struct lane *from_other, struct lane *to_other) {
  ip4_addr_t address, mask, gateway;
  IP4_ADDR(&address, 192, 0, 2, number);
  IP4_ADDR(&mask, 255, 255, 255, 0);
  IP4_ADDR(&gateway, 0, 0, 0, 0);
  end->from_other = from_other, end->to_other = to_other;
  netif_add(&end->netif, &address, &mask, &gateway, end, set_up, ethernet_input);
  netif_set_up(&end->netif);
}

/* Acts as the receiving application: copies the received data, and verifies them if requested. */
static err_t on_receive(void *argument, struct tcp_pcb *pcb, struct pbuf *p, err_t error) {
  (void)argument, (void)error;
  if (p == NULL) {
    closed_by_peer = 1;
    return ERR_OK;
  }
  for (u16_t done = 0; done < p->tot_len;) {
    u16_t count = pbuf_copy_partial(p, heard, sizeof heard, done);
    if (verify && memcmp(heard, pattern + (read_bytes + done) % PERIOD, count) != 0)
      failed = 1, trouble = "bytes have arrived that were not sent";
    done += count;
  }
  read_bytes += p->tot_len;
  tcp_recved(pcb, p->tot_len);
  pbuf_free(p);
  return ERR_OK;
}

static err_t on_accept(void *argument, struct tcp_pcb *pcb, err_t error) {
  (void)argument;
  if (error != ERR_OK || pcb == NULL) return ERR_VAL;
  server = pcb;
  tcp_recv(pcb, on_receive);
  return ERR_OK;
}

static err_t on_connected(void *argument, struct tcp_pcb *pcb, err_t error) {
  (void)argument, (void)pcb, (void)error;
  connected = 1;
  return ERR_OK;
}

static void on_error(void *argument, err_t error) {
  (void)argument, (void)error;
  failed = 1, trouble = "a connection was reset";
}

static int open_connection(void) {
  ip_addr_t address = right.netif.ip_addr;
  server = NULL, connected = 0, closed_by_peer = 0;
  client = tcp_new();
  if (client == NULL) return 0;
  tcp_bind_netif(client, &left.netif);
  tcp_recv(client, on_receive);
  tcp_err(client, on_error);
  if (tcp_connect(client, &address, PORT, on_connected) != ERR_OK) return 0;
  while (!failed && !(connected && server != NULL)) {
    receive(&right, BATCH);
    receive(&left, BATCH);
    sys_check_timeouts();
  }
  return !failed;
}

/* Closes the connection. The server closes first, so that its end enters TIME-WAIT. An abort then
 * removes this end without sending a segment. */
static void close_connection(void) {
  tcp_err(client, NULL);
  tcp_close(server);
  while (!closed_by_peer) receive(&left, BATCH), receive(&right, BATCH), sys_check_timeouts();
  tcp_close(client);
  while (server->state != TIME_WAIT)
    receive(&right, BATCH), receive(&left, BATCH), sys_check_timeouts();
  tcp_abort(server);
  receive(&left, BATCH);
}

static void bulk(uint64_t amount, unsigned frames_before_answer) {
  uint64_t total = amount * SEGMENT, written = 0;
  read_bytes = 0;
  tcp_nagle_disable(client);
  while (read_bytes < total && !failed) {
    while (written < total && tcp_sndbuf(client) > 0) {
      uint64_t count = LWIP_MIN(total - written, tcp_sndbuf(client));
      if (tcp_write(client, pattern + written % PERIOD, (u16_t)count, TCP_WRITE_FLAG_COPY) !=
          ERR_OK)
        break;
      written += count;
    }
    tcp_output(client);
    do receive(&right, frames_before_answer);
    while (right.from_other->count > 0 && !failed);
    receive(&left, BATCH);
    sys_check_timeouts();
  }
}

static void pass_byte(struct tcp_pcb *from, struct end *to) {
  echoed = read_bytes;
  tcp_write(from, pattern + read_bytes % PERIOD, 1, TCP_WRITE_FLAG_COPY);
  tcp_output(from);
  while (read_bytes == echoed && !failed) {
    receive(to, BATCH);
    sys_check_timeouts();
  }
}

static void ping_pong(uint64_t amount) {
  read_bytes = 0;
  tcp_nagle_disable(client);
  tcp_nagle_disable(server);
  while (amount-- > 0 && !failed) {
    pass_byte(client, &right);
    pass_byte(server, &left);
  }
}

static void connect_and_close(uint64_t amount) {
  while (amount-- > 0 && !failed)
    if (open_connection())
      close_connection();
    else
      failed = 1, trouble = "no connection could be opened";
}

static void run(const char *work, uint64_t amount) {
  int is_connect = strcmp(work, "connect") == 0;
  failed = 0;
  if (!is_connect && !open_connection()) failed = 1, trouble = "no connection could be opened";
  uint64_t out = to_right.carried, back = to_left.carried;
  uint64_t start = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
  if (failed) {
  } else if (is_connect)
    connect_and_close(amount);
  else if (strcmp(work, "ping-pong") == 0)
    ping_pong(amount);
  else
    bulk(amount, strcmp(work, "bulk") == 0 ? 2 : BATCH);
  uint64_t taken = nanoseconds(CLOCK_THREAD_CPUTIME_ID) - start;
  out = to_right.carried - out, back = to_left.carried - back;
  if (!is_connect && !failed) close_connection();
  if (failed)
    printf("error %s\n", trouble);
  else
    printf("ok %llu %llu %llu\n", (unsigned long long)taken, (unsigned long long)out,
           (unsigned long long)back);
  fflush(stdout);
}

int main(void) {
  char work[32];
  unsigned long long amount;
  for (size_t i = 0; i < sizeof pattern; i++) pattern[i] = (uint8_t)(i % PERIOD);
  lwip_init();
  add(&left, 1, &to_left, &to_right);
  add(&right, 2, &to_right, &to_left);
  listener = tcp_new();
  tcp_bind_netif(listener, &right.netif);
  if (tcp_bind(listener, &right.netif.ip_addr, PORT) != ERR_OK) return 1;
  listener = tcp_listen(listener);
  tcp_accept(listener, on_accept);
  printf("%s; window %d bytes, send buffer %d\n", LWIP_VERSION_STRING, TCP_WND, TCP_SND_BUF);
  fflush(stdout);
  while (scanf("%31s %llu %d", work, &amount, &verify) == 3) run(work, amount);
  return 0;
}
