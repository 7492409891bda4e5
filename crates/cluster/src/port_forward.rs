//! A local port that leads to a pod's.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::Api;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::connect::Cluster;
use crate::error::Error;
use crate::retry::patiently;

/// Listens on 127.0.0.1 for as long as it lives; each connection is a forward of its own. Ends with the pod: open a new one per pod.
#[derive(Debug)]
pub struct LocalForward {
    address: SocketAddr,
    _stop: tokio_util::sync::DropGuard,
}

/// Long enough not to spin while file descriptors are short.
const AFTER_A_FAILED_ACCEPT: Duration = Duration::from_millis(100);

impl LocalForward {
    /// `127.0.0.1:PORT`.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Cluster {
    /// Opens one to a pod's port. The pod need not be Ready (a sealed OpenBao is not).
    pub async fn port_forward(
        &self,
        namespace: &str,
        pod: &str,
        port: u16,
    ) -> Result<LocalForward, Error> {
        let api = Api::<Pod>::namespaced(self.client(), namespace);
        let action = format!("forward a local port to pod {namespace}/{pod}:{port}");
        // A pod that is not there is told now, not at the first connection.
        patiently(&action, || api.get_metadata(pod)).await?;
        let broken = |source: std::io::Error| Error::Stream {
            action: action.clone(),
            source: Box::new(source),
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .map_err(broken)?;
        let address = listener.local_addr().map_err(broken)?;
        let stop = CancellationToken::new();
        tokio::spawn(serve(listener, api, pod.to_owned(), port, stop.clone()));
        Ok(LocalForward {
            address,
            _stop: stop.drop_guard(),
        })
    }
}

async fn serve(
    listener: TcpListener,
    api: Api<Pod>,
    pod: String,
    port: u16,
    stop: CancellationToken,
) {
    let accepting = async {
        loop {
            match listener.accept().await {
                Ok((connection, _)) => {
                    let (api, pod, stop) = (api.clone(), pod.clone(), stop.clone());
                    tokio::spawn(async move {
                        tokio::select! {
                            () = stop.cancelled() => {}
                            () = carry(connection, &api, &pod, port) => {}
                        }
                    });
                }
                // Out of file descriptors, or a connection that was gone at once: the next one may do.
                Err(error) => {
                    debug!(%error, "a forwarded connection could not be accepted");
                    tokio::time::sleep(AFTER_A_FAILED_ACCEPT).await;
                }
            }
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = accepting => {}
    }
}

/// Closing the local connection is all that its client can be told when the pod's side fails.
async fn carry(mut connection: TcpStream, api: &Api<Pod>, pod: &str, port: u16) {
    let mut forward = match api.portforward(pod, &[port]).await {
        Ok(forward) => forward,
        Err(error) => {
            debug!(error = %crate::answer::Answer::from(error), pod, port, "no forward");
            return;
        }
    };
    let Some(mut stream) = forward.take_stream(port) else {
        return;
    };
    let refused = forward.take_error(port);
    let refused = async {
        match refused {
            Some(refused) => refused.await,
            None => None,
        }
    };
    let carried = async {
        if let Err(error) = copy_bidirectional(&mut connection, &mut stream).await {
            debug!(%error, pod, port, "a forwarded connection broke");
        }
    };
    tokio::pin!(carried);
    tokio::select! {
        () = &mut carried => {}
        // `None` only says that no error can come any more.
        message = refused => match message {
            Some(message) => debug!(message, pod, port, "the pod refused the connection"),
            None => carried.await,
        },
    }
    forward.abort();
}
