//! What all TLS lanes of a gateway share: certificates, and rules for recognising others.

use super::{Binding, Buffers, FIRST_INCOMING, PROTOCOL, Session, Tls};
use causeway_broker::Credentials;
use causeway_broker::tls::{self as grid, Expect, Trust};
use mio::net::TcpStream;
use rustls::client::{Resumption, UnbufferedClientConnection};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::server::UnbufferedServerConnection;
use rustls::{ClientConfig, ServerConfig};
use sha2::{Digest, Sha256};
use std::io;
use std::sync::Arc;

/// What all TLS lanes of a gateway share.
pub(crate) struct Context {
    clients: Clients,
    server: Arc<ServerConfig>,
    pub(super) own: Binding,
}

/// How this gateway dials.
enum Clients {
    /// Whoever answers proves afterwards that they have the grid's key.
    Anybody(Arc<ClientConfig>),
    /// Members of a grid show their certificates to each other.
    Members(Box<Credentials>, Trust),
}

impl Context {
    /// Makes a key and a certificate for this process.
    pub(crate) fn new() -> io::Result<Context> {
        Context::with(ring::default_provider())
    }

    /// The context of a member of a grid.
    pub(crate) fn for_member(credentials: &Credentials, trust: &Trust) -> io::Result<Context> {
        let server = grid::server_config(credentials, trust, Expect::AnySite);
        let mut server = server.map_err(io::Error::other)?;
        server.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(Context {
            clients: Clients::Members(Box::new(credentials.clone()), trust.clone()),
            server: Arc::new(server),
            own: Sha256::digest(&credentials.certificate).into(),
        })
    }

    pub(super) fn with(provider: CryptoProvider) -> io::Result<Context> {
        let made =
            rcgen::generate_simple_self_signed(vec!["causeway".to_owned()]).map_err(io::Error::other)?;
        let certificate = made.cert.der().clone();
        let own = Sha256::digest(&certificate).into();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let provider = Arc::new(provider);
        let mut server = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(io::Error::other)?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .map_err(io::Error::other)?;
        // Lanes are few and live long, so resumption would save nothing.
        server.send_tls13_tickets = 0;
        server.alpn_protocols = vec![PROTOCOL.to_vec()];
        let mut client = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(io::Error::other)?
            .dangerous()
            // The module `tls` explains what proves who the other side is.
            .with_custom_certificate_verifier(grid::anybody())
            .with_no_client_auth();
        client.resumption = Resumption::disabled();
        client.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(Context {
            clients: Clients::Anybody(Arc::new(client)),
            server: Arc::new(server),
            own,
        })
    }

    /// A session that dials the gateway of `site`.
    pub(crate) fn client(&self, site: &str) -> io::Result<Arc<ClientConfig>> {
        match &self.clients {
            Clients::Anybody(client) => Ok(client.clone()),
            Clients::Members(own, trust) => {
                let client = grid::client_config(own, trust, Expect::Site(site.to_owned()));
                let mut client = client.map_err(io::Error::other)?;
                client.alpn_protocols = vec![PROTOCOL.to_vec()];
                Ok(Arc::new(client))
            }
        }
    }

    pub(crate) fn server(&self) -> Arc<ServerConfig> {
        self.server.clone()
    }

    /// Hash of this gateway's certificate.
    pub(crate) fn own(&self) -> Binding {
        self.own
    }

    /// A session over a connection to the gateway of a site that this gateway dialled, or over a connection
    /// that it accepted.
    pub(crate) fn session(&self, socket: TcpStream, dialled: Option<&str>) -> io::Result<Tls> {
        let (session, binding) = if let Some(site) = dialled {
            let name = ServerName::try_from("causeway").map_err(io::Error::other)?;
            let client =
                UnbufferedClientConnection::new(self.client(site)?, name).map_err(io::Error::other)?;
            (Session::Client(client), None)
        } else {
            let server = UnbufferedServerConnection::new(self.server.clone()).map_err(io::Error::other)?;
            (Session::Server(server), Some(self.own))
        };
        Ok(Tls {
            socket,
            session,
            binding,
            buffers: Buffers {
                incoming: vec![0; FIRST_INCOMING],
                ..Buffers::default()
            },
            low_water: 1,
            reads_on: true,
        })
    }
}
