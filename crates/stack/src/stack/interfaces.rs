//! The network interfaces of a host, which can be added and removed at run time.
//!
//! The field `interface` of [`Stack`] holds the current interface: the one whose link is served in
//! this turn, or to which the current call applies. The field `others` holds all other interfaces.
//! The code that handles packets thus needs no interface number, and a host with one interface has
//! no extra cost. [`Stack::serving`] makes another interface the current one for the duration of
//! one call.

use crate::config::InterfaceConfig;
use crate::error::Error;
use crate::ip::egress::Egress;
use crate::ip::interface::{Audience, Interface, is_link_local};
use crate::ip::route::{Route, RouteOrigin};
use crate::ip::zone::needs_zone;
use crate::link::{Capabilities, Link};
use crate::ready::{Ready, Sender};
use crate::services::Service;
use crate::sockets::Socket;
use crate::stack::Stack;
use crate::stack::transmit::destination_of;
use crate::stack::turn::InterfaceLink;
use crate::steering::Shard;
use crate::tcp::UNRESOLVED;
use crate::tx::Reply;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr, SocketAddrV6};
use linerate_units::Instant;

/// # Interfaces
///
/// A host begins with one interface. Each interface has its own link, addresses, neighbours,
/// groups, routers and DHCP lease. All interfaces share the host's sockets, routes and limits.
/// Methods that concern an interface (addresses, groups, DHCP, frames, turns) apply to the current
/// interface. This is the first interface, or within a call of [`Stack::on`] the interface given to
/// that call.
///
/// A host accepts a packet to any of its addresses on any of its interfaces, unless the address is
/// link-local (the weak host model of RFC 1122 §3.3.4.2). A sent packet leaves over the interface
/// of the route to its destination.
impl Stack {
    /// Adds an interface on a link with the capabilities `link`, and returns the number of the
    /// interface. In socket addresses, this number is the zone of link-local IPv6 addresses.
    ///
    /// # Errors
    /// [`Error::TooManyInterfaces`] if the limit of interfaces is reached.
    pub fn add_interface(
        &mut self,
        now: Instant,
        config: &InterfaceConfig,
        link: Capabilities,
    ) -> Result<u32, Error> {
        self.advance_clock(now);
        let limit = self.limits.interfaces;
        let is_free = |number: &u16| !self.has_interface(*number);
        let number = (1..Egress::NUMBERS).find(is_free).filter(|_| self.others.len() + 1 < limit);
        let number = number.ok_or(Error::TooManyInterfaces { limit })?;
        let is_cached = self.interface.flow_cache.is_enabled;
        let config = InterfaceConfig {
            dhcp: config.dhcp.clone().filter(|_| self.shard == Shard::ONLY),
            ..config.clone()
        };
        let added = Interface::new(number, &config, &self.limits, is_cached, &self.keys);
        self.others.push(Box::new(added));
        self.serving(number, |stack| {
            stack.begin_interface();
            stack.attach(link);
            stack.handle_address_change();
        });
        Ok(number.into())
    }

    /// Attaches the link `first` to the only interface of the host, and adds an interface for each
    /// further link. Returns each link with the number of its interface, for
    /// [`Stack::turn_on_links`].
    ///
    /// # Errors
    /// [`Error::TooManyInterfaces`] if the limit of interfaces is reached.
    pub fn attach_links<L: Link>(
        &mut self,
        now: Instant,
        first: L,
        further: impl IntoIterator<Item = (InterfaceConfig, L)>,
    ) -> Result<Vec<InterfaceLink<L>>, Error> {
        self.attach(first.capabilities());
        let mut links = vec![InterfaceLink { interface: self.served(), link: first }];
        for (config, link) in further {
            let interface = self.add_interface(now, &config, link.capabilities())?;
            links.push(InterfaceLink { interface, link });
        }
        Ok(links)
    }

    /// Removes an interface with its routes and addresses. The connections of its addresses end as
    /// described at [`Stack::remove_address`]. Sockets that sent over the interface move to another
    /// one. If the removed interface is the current one, another interface becomes the current
    /// interface.
    ///
    /// # Errors
    /// [`Error::UnknownInterface`]; [`Error::OnlyInterface`] for the last interface of the host.
    pub fn remove_interface(&mut self, now: Instant, number: u32) -> Result<(), Error> {
        self.advance_clock(now);
        let removed = self.numbered(number)?;
        let other = self.others.first().ok_or(Error::OnlyInterface)?.number;
        self.serving(removed, |stack| {
            for own in stack.addresses().iter().map(|own| own.cidr.address()).collect::<Vec<_>>() {
                stack.remove_address(now, own);
            }
        });
        if self.interface.number == removed {
            self.serve(other);
        }
        self.routes.remove_interface(number);
        let place = self.others.iter().position(|known| known.number == removed);
        if let Some(mut gone) = place.map(|place| self.others.remove(place)) {
            while let Some((_, packet)) = gone.replies.pop() {
                self.counted.ip.out_discards += 1;
                gone.replies.recycle(packet);
            }
            self.adopt_sockets(&gone);
        }
        self.schedule_others();
        self.handle_address_change();
        Ok(())
    }

    /// Lets the current interface send for all sockets that have sent over the removed interface
    /// `gone`.
    fn adopt_sockets(&mut self, gone: &Interface) {
        let own = self.interface.number;
        for index in self.sockets.iter().map(|(index, _)| index).collect::<Vec<_>>() {
            let egress = self.sockets.egress_mut(index);
            let Some(egress) = egress.filter(|egress| egress.interface() == gone.number) else {
                continue;
            };
            egress.set_interface(own);
            if let Some(socket) = self.sockets.full_at(index) {
                socket.next_hop_generation = UNRESOLVED;
            }
        }
        for sender in gone.ready.iter().filter(|&sender| sender != Sender::Replies) {
            self.interface.ready.push(sender);
        }
        self.recent_headers = self.recent_headers.unresolved();
    }

    /// Returns the numbers of all interfaces of the host.
    pub fn interfaces(&self) -> impl Iterator<Item = u32> + '_ {
        self.all_interfaces().map(|interface| interface.number.into())
    }

    /// Runs `calls` with `interface` as the current interface, and returns the result of `calls`.
    ///
    /// ```
    /// use linerate_stack::{Capabilities, InterfaceConfig, Medium, Stack, StackConfig};
    /// use linerate_units::Instant;
    /// use linerate_wire::MacAddress;
    ///
    /// let first = StackConfig::new(MacAddress::ZERO, "192.0.2.1/24".parse()?);
    /// let mut stack = Stack::new(first, [7; 32]);
    /// let second = InterfaceConfig::new(MacAddress::ZERO, "198.51.100.1/24".parse()?);
    /// let link = Capabilities::new(Medium::Ip, 1_500);
    /// let number = stack.add_interface(Instant::ZERO, &second, link)?;
    /// let own = stack.on(number, |stack| stack.addresses()[0].cidr)?;
    /// assert_eq!(own, "198.51.100.1/24".parse()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownInterface`] if there is no interface with this number.
    pub fn on<T>(
        &mut self,
        interface: u32,
        calls: impl FnOnce(&mut Self) -> T,
    ) -> Result<T, Error> {
        let number = self.numbered(interface)?;
        Ok(self.serving(number, calls))
    }

    /// Returns the number of the interface that has this address; `None` if no interface has it.
    #[must_use]
    pub fn interface_with(&self, address: IpAddr) -> Option<u32> {
        let mut all = self.all_interfaces();
        all.find(|known| known.is_configured(address)).map(|known| known.number.into())
    }

    /// Returns the number of the current interface.
    pub(crate) const fn served(&self) -> u32 {
        self.interface.number as u32
    }

    pub(super) fn numbered(&self, number: u32) -> Result<u16, Error> {
        let known = u16::try_from(number).ok().filter(|&number| self.has_interface(number));
        known.ok_or(Error::UnknownInterface(number))
    }

    pub(crate) fn has_interface(&self, number: u16) -> bool {
        self.interface_numbered(number).is_some()
    }

    pub(crate) fn interface_numbered(&self, number: u16) -> Option<&Interface> {
        self.all_interfaces().find(|interface| interface.number == number)
    }

    pub(crate) fn all_interfaces(&self) -> impl Iterator<Item = &Interface> {
        core::iter::once(&self.interface).chain(self.others.iter().map(|other| &**other))
    }

    pub(crate) fn all_interfaces_mut(&mut self) -> impl Iterator<Item = &mut Interface> {
        let others = self.others.iter_mut().map(|other| &mut **other);
        core::iter::once(&mut self.interface).chain(others)
    }

    /// Runs `step` with the interface `number` as the current interface, and then makes the
    /// previous interface the current one again.
    #[inline]
    pub(crate) fn serving<T>(&mut self, number: u16, step: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.interface.number;
        if number != before {
            self.serve(number);
        }
        let result = step(self);
        if number != before {
            self.serve(before);
        }
        result
    }

    /// Runs `step` once for each interface of the host, with that interface as the current one.
    pub(super) fn serving_each(&mut self, mut step: impl FnMut(&mut Self)) {
        let numbers = self.others.iter().map(|other| other.number).collect::<Vec<_>>();
        step(self);
        numbers.into_iter().for_each(|number| self.serving(number, &mut step));
    }

    /// Makes the interface `number` the current one. Unfinished work of the previous interface,
    /// such as coalesced segments and a batch, is completed first.
    #[cold]
    fn serve(&mut self, number: u16) {
        let is_it = |other: &&mut Box<Interface>| other.number == number;
        self.flush_coalesced();
        self.end_data_run();
        self.commit_batch();
        self.batch.forget();
        self.cached_route = None;
        if let Some(other) = self.others.iter_mut().find(is_it) {
            core::mem::swap(&mut self.interface, &mut **other);
        }
        self.schedule_others();
    }

    /// Is the socket at `index` in the ring of senders of `interface`?
    pub(super) fn is_sender(&self, interface: u16, index: u32) -> bool {
        self.interface_numbered(interface)
            .is_some_and(|known| known.ready.contains(Sender::Socket(index)))
    }

    /// Returns the ring of senders of the interface `number`.
    pub(crate) fn ring(&mut self, number: u16) -> &mut Ready {
        Egress::over(number).ring(&mut self.interface, &mut self.others, &mut self.local_ready)
    }
}

/// # The choice of an interface
impl Stack {
    /// Is this an address of the host: an address of the current interface, or an address of
    /// another interface that is not link-local?
    pub(crate) fn is_ours(&self, address: IpAddr) -> bool {
        self.interface.is_ours(address) || self.others_have(address)
    }

    /// Does an interface other than the current one have this address? Link-local addresses of
    /// other interfaces do not count.
    pub(crate) fn others_have(&self, address: IpAddr) -> bool {
        !self.others.is_empty()
            && !is_link_local(address)
            && self.others.iter().any(|other| other.is_configured(address))
    }

    /// Classifies a destination address: this host, a broadcast or multicast address, or another
    /// host.
    pub(crate) fn audience(&self, address: IpAddr) -> Audience {
        match self.interface.audience(address) {
            Audience::Others if self.others_have(address) => Audience::Us,
            audience => audience,
        }
    }

    /// Checks that an application may send from the source address `own` to `destination`. The
    /// source must be an address of this host, and packets from a loopback address must not leave
    /// this host (RFC 1122 §3.2.1.3).
    #[inline(never)]
    pub(crate) fn check_source(&self, own: IpAddr, destination: IpAddr) -> Result<(), Error> {
        if own.is_ipv4() != destination.is_ipv4() {
            return Err(Error::OtherVersion { local: own, remote: destination });
        }
        if !self.is_ours(own) {
            return Err(Error::AddressNotOurs(own));
        }
        let leaves = !self.is_ours(destination);
        if own.is_loopback() && leaves { Err(Error::Loopback(own)) } else { Ok(()) }
    }

    /// Returns the number of the interface for an address that an application has given: the zone
    /// of the address if it is link-local, or else the interface of the route to the address.
    ///
    /// # Errors
    /// [`Error::UnknownZone`] if the zone is not the number of an interface; [`Error::MissingZone`]
    /// if the zone is zero and the host has several interfaces.
    #[inline]
    pub(crate) fn interface_for(&self, given: &SocketAddr) -> Result<u16, Error> {
        match given {
            SocketAddr::V6(given) if needs_zone(*given.ip()) => self.zone(given),
            _ => Ok(self.interface_towards(given.ip())),
        }
    }

    /// Returns the zone of a link-local address, which is the number of an interface. Zone zero is
    /// accepted if the host has only one interface.
    #[cold]
    fn zone(&self, given: &SocketAddrV6) -> Result<u16, Error> {
        let (address, zone) = (*given.ip(), given.scope_id());
        match u16::try_from(zone) {
            Ok(0) if self.others.is_empty() => Ok(self.interface.number),
            Ok(0) => Err(Error::MissingZone(address)),
            Ok(number) if self.has_interface(number) => Ok(number),
            _ => Err(Error::UnknownZone { address, zone }),
        }
    }

    /// Checks that the zone of a local address is the number of the current interface. Accepts an
    /// address without a zone.
    pub(crate) fn check_zone(&self, local: &SocketAddr) -> Result<(), Error> {
        match local {
            SocketAddr::V6(local) if needs_zone(*local.ip()) && local.scope_id() != 0 => {
                let (address, zone) = (*local.ip(), local.scope_id());
                let is_served = zone == u32::from(self.interface.number);
                if is_served { Ok(()) } else { Err(Error::UnknownZone { address, zone }) }
            }
            _ => Ok(()),
        }
    }

    /// Returns the number of the interface over which packets to `destination` leave. Link-local,
    /// multicast and limited broadcast addresses exist on every link, so for these it is the
    /// current interface. It is also the current interface for addresses of this host, and for
    /// destinations without a route.
    #[inline]
    pub(crate) fn interface_towards(&self, destination: IpAddr) -> u16 {
        if self.others.is_empty() {
            return self.interface.number;
        }
        self.route_interface(destination.to_canonical())
    }

    #[cold]
    fn route_interface(&self, destination: IpAddr) -> u16 {
        let is_of_link = match destination {
            IpAddr::V4(destination) => destination.is_broadcast(),
            IpAddr::V6(destination) => destination.is_unicast_link_local(),
        };
        if is_of_link || destination.is_multicast() || self.is_ours(destination) {
            return self.interface.number;
        }
        let route = self.routes.lookup(destination);
        route.map_or(self.interface.number, |route| self.interface_of(route))
    }

    /// Returns the number of the interface of a route: the interface set in the route, or else the
    /// interface of the route to its gateway, or else the first interface.
    fn interface_of(&self, route: &Route) -> u16 {
        let of_gateway = || self.routes.lookup(route.gateway?)?.interface;
        let number = route.interface.or_else(of_gateway).and_then(|number| number.try_into().ok());
        let first = || self.all_interfaces().map(|interface| interface.number).min();
        number.filter(|&number| self.has_interface(number)).or_else(first).unwrap_or_default()
    }

    /// Returns the current generation of routes and neighbours: a number that changes whenever a
    /// resolved MAC address may have become invalid. Only generations of one interface can be
    /// compared.
    #[inline(always)]
    pub(crate) const fn next_hop_generation(&self) -> u64 {
        self.routes.generation() + self.interface.neighbors.generation()
    }

    /// Moves a sender to the ring of another interface, if its next packet must leave over that
    /// interface. This is necessary if routes have changed, or if one socket sends to several
    /// destinations. If the sender is the host itself ([`Sender::Replies`]), only its next packet
    /// is moved. Returns whether the sender or packet was moved.
    #[cold]
    pub(super) fn move_sender(&mut self, sender: Sender) -> bool {
        if self.interface.fragmenter.is_busy() {
            return false;
        }
        let Some(destination) = self.destination_of_next(sender) else { return false };
        let number = self.interface_towards(destination);
        if number == self.interface.number {
            return false;
        }
        match sender {
            Sender::Replies => self.move_reply(number),
            Sender::Socket(index) => {
                self.interface.ready.remove(sender);
                if let Some(egress) = self.sockets.egress_mut(index) {
                    egress.set_interface(number);
                }
                self.ring(number).push(sender);
            }
        }
        true
    }

    /// Returns the destination of the next packet of a sender. Returns `None` if there is no
    /// packet, or if the interface need not be checked, because the packet certainly leaves over
    /// the current one.
    fn destination_of_next(&self, sender: Sender) -> Option<IpAddr> {
        let packet = match sender {
            Sender::Replies => match self.interface.replies.front()? {
                (Reply::Packet, packet) => packet,
                (Reply::Arp(_), _) => return None,
            },
            Sender::Socket(index) => match self.sockets.get(index)? {
                Socket::Tcp(socket) => {
                    let is_resolved = socket.next_hop_generation == self.next_hop_generation();
                    return (!is_resolved).then(|| socket.flow().hosts.remote());
                }
                Socket::Udp(socket) => socket.to_send.front()?.1,
                Socket::Raw(socket) => socket.to_send.front()?.1,
                Socket::Compact(_) | Socket::TimeWait(_) | Socket::Listen(_) => return None,
            },
        };
        destination_of(packet)
    }

    fn move_reply(&mut self, number: u16) {
        let Some((reply, packet)) = self.interface.replies.pop() else { return };
        let mut others = self.others.iter_mut();
        let kept = others.find(|other| other.number == number).is_some_and(|other| {
            other.ready.push(Sender::Replies);
            other.replies.push(reply, &packet)
        });
        self.counted.ip.out_discards += u64::from(!kept);
        self.interface.replies.recycle(packet);
    }

    /// Sets the deadline of [`Service::Interfaces`] to the earliest deadline of all interfaces
    /// except the current one. The deadlines of an interface change only while it is the current
    /// one.
    fn schedule_others(&mut self) {
        let next = self.others.iter().map(|other| other.poll_timeout()).min();
        self.deadlines.set(Service::Interfaces, next.unwrap_or(Instant::NEVER));
    }

    /// Runs one timer of an interface other than the current one, if such a timer is due.
    pub(super) fn handle_interfaces_timeout(&mut self, now: Instant) {
        let mut others = self.others.iter();
        let due = others.find(|other| other.poll_timeout() <= now).map(|other| other.number);
        if let Some(number) = due {
            self.serving(number, |stack| {
                // At most one timer runs in each call of this method, because the caller counts the
                // call as one timer of its budget.
                let _ = stack.handle_neighbor_timeout(now)
                    || stack.handle_interface_service_timeout(now);
            });
        }
        self.schedule_others();
    }

    /// Can any interface send frames now? At least one interface must have frames to send, and the
    /// link of this interface must have had room for all frames of its most recent turn.
    pub(crate) fn can_transmit(&self) -> bool {
        self.all_interfaces().any(|known| !known.ready.is_empty() && !known.is_blocked)
    }

    /// Begins duplicate address detection and router discovery on the current interface, which is
    /// new, and adds the routes to its networks.
    pub(super) fn begin_interface(&mut self) {
        let number = self.interface.number;
        for &network in self.interface.addresses.in_use() {
            let interface = Some(number.into());
            self.routes.insert(RouteOrigin::Direct, Route { interface, ..Route::direct(network) });
        }
        self.detect_duplicates_of_all();
        self.schedule_discovery();
    }
}
