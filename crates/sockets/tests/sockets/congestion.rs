//! A custom congestion control that is set for a single connection or listener.

use linerate_link::memory::{MemoryConfig, pair};
use linerate_sockets::{
    Config, CongestionName, ConnectOptions, Controller, CustomCongestion, FastRecovery, Net,
    StackConfig, Window,
};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of connections for which the congestion control of this test has been created.
static CREATED: AtomicUsize = AtomicUsize::new(0);

#[derive(Clone, Debug)]
struct Fixed(Window);

impl Controller for Fixed {
    fn window(&self) -> &Window {
        &self.0
    }

    fn window_mut(&mut self) -> &mut Window {
        &mut self.0
    }

    fn fast_recovery(&self) -> FastRecovery {
        FastRecovery::UntilRecovered
    }

    fn on_loss(&mut self, _flight: u32) {}

    fn boxed_clone(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

#[test]
fn one_connection_has_a_control_of_the_application() {
    let (left, _right) = pair(MemoryConfig::default()).unwrap();
    let config =
        StackConfig::new("02:00:00:00:00:01".parse().unwrap(), "10.0.0.1/24".parse().unwrap());
    let net = Net::builder(left, config).start().unwrap();
    let listener = net.bind("10.0.0.1:80").unwrap();
    let _usual = net.connect(listener.local_addr().unwrap()).unwrap();
    assert_eq!(CREATED.load(Ordering::Relaxed), 0);
    let congestion = CongestionName::Custom(CustomCongestion {
        name: "fixed",
        new: |window| {
            CREATED.fetch_add(1, Ordering::Relaxed);
            Box::new(Fixed(window))
        },
    });
    let tcp = Config { congestion, ..Config::modern() };
    let options = ConnectOptions { config: Some(tcp), ..ConnectOptions::default() };
    let _own = net.connect_with(listener.local_addr().unwrap(), &options).unwrap();
    assert_eq!(CREATED.load(Ordering::Relaxed), 1, "only this connection uses it");
}
