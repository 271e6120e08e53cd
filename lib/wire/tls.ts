import type { X509Certificate } from 'node:crypto';
import type { TlsSettings } from './tls-settings.ts';

/** The client's TLS material, all in PEM form, and what of TLS is allowed (lowest version by default TLS 1.2). */
export interface ClientTls extends TlsSettings {
  /** The CAs that the principal's certificate must come from. Default: the system's. */
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  /**
   * Judges the server's certificate, which comes from one of the CAs, instead of its host name: the certificate first, then
   * those that came with it. It throws an Error that says why the certificate does not count.
   */
  readonly checkServer?: (chain: readonly X509Certificate[]) => void;
  /** Accepts any server certificate. */
  readonly insecure?: boolean;
}

/** The server's TLS material, all in PEM form, and what of TLS is allowed (lowest version by default TLS 1.2). */
export interface ServerTls extends TlsSettings {
  readonly cert: string;
  readonly key: string;
  /** The CAs that client certificates must come from. Without one no client certificate is asked for. */
  readonly clientCa?: string;
  /** Whether an agent without a verified certificate is refused (with an answer that names the reason). */
  readonly requireClientCertificate?: boolean;
}
