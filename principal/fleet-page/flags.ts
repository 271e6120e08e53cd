import { splitHostPort } from '../../lib/base/index.ts';
import { boolFlag, listFlag, stringFlag } from '../../lib/ops/index.ts';

/** The flags of the fleet page; `env` gives the environment variable of a name. */
export function fleetPageFlags(env: (name: string) => { readonly env: string }) {
  return {
    'fleet-page-listen': stringFlag({
      usage: 'address and port at which the fleet is shown to people who may see clusters in Argo CD; empty: nowhere',
      ...env('FLEET_PAGE_LISTEN'),
      check: (value) =>
        value === '' || splitHostPort(value) !== undefined
          ? undefined
          : `must be host:port, not ${JSON.stringify(value)}`,
    }),
    'fleet-page-path': stringFlag({
      usage: 'path of the fleet page, for a proxy that serves it beside Argo CD',
      default: '/',
      ...env('FLEET_PAGE_PATH'),
      check: (value) =>
        /^\/(?:[A-Za-z0-9._-]+\/)*$/.test(value)
          ? undefined
          : `must begin and end with a slash, not ${JSON.stringify(value)}`,
    }),
    'fleet-page-plaintext': boolFlag({
      usage:
        'serve the fleet page without TLS, behind a proxy that adds it; otherwise with the certificate of the gRPC server',
      ...env('FLEET_PAGE_PLAINTEXT'),
    }),
    'fleet-page-login-url': stringFlag({
      usage: "where people log in to Argo CD; empty: the url of Argo CD's ConfigMap argocd-cm",
      ...env('FLEET_PAGE_LOGIN_URL'),
      check: (value) =>
        value === '' || /^https?:\/\/[^\s"'<>]+$/.test(value) ? undefined : 'must be an http or https URL',
    }),
    'fleet-page-proxy-ca-secret-name': stringFlag({
      usage:
        'Secret with the CA of authenticating proxies (ca.crt): those with a name in --fleet-page-proxy-names name the viewer in X-Forwarded-User and X-Forwarded-Groups',
      ...env('FLEET_PAGE_PROXY_CA_SECRET_NAME'),
    }),
    'fleet-page-proxy-names': listFlag({
      usage: 'common names or DNS names of the client certificates of authenticating proxies',
      ...env('FLEET_PAGE_PROXY_NAMES'),
    }),
    'fleet-page-proxy-loopback': boolFlag({
      usage:
        'programs of the same pod name the viewer in X-Forwarded-User and X-Forwarded-Groups, such as an OAuth2 proxy beside the principal; whoever may forward ports to the pod can do so too',
      ...env('FLEET_PAGE_PROXY_LOOPBACK'),
    }),
  };
}
