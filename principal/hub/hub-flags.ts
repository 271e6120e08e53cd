import { isIP } from 'node:net';
import { principalFlags } from '../flags.ts';

/** Flags of the commands that prepare a hub: the principal's own, so that both find the same objects. */
export const hubCommandFlags = {
  namespace: { ...principalFlags.namespace, default: 'argocd', usage: "Argo CD's namespace on the hub" },
  kubeconfig: principalFlags.kubeconfig,
  kubecontext: principalFlags.kubecontext,
  'tls-ca-secret-name': { ...principalFlags['tls-ca-secret-name'], usage: 'Secret with the certificate authority' },
  'tls-secret-name': { ...principalFlags['tls-secret-name'], usage: "Secret with the principal's certificate" },
  'resource-proxy-secret-name': principalFlags['resource-proxy-secret-name'],
  'jwt-secret-name': principalFlags['jwt-secret-name'],
};

/** Whether a text can be a host in a certificate: an IP address or a DNS name. */
export function isHost(text: string): boolean {
  const label = '[A-Za-z0-9]([-A-Za-z0-9]{0,61}[A-Za-z0-9])?';
  return isIP(text) !== 0 || (text.length <= 253 && new RegExp(`^${label}(\\.${label})*$`).test(text));
}
