import { command, listFlag, printableLines } from '../../lib/ops/index.ts';
import { hubCommandFlags, isHost } from './hub-flags.ts';

const pkiFlags = {
  ...hubCommandFlags,
  'principal-address': listFlag({
    usage:
      "host name or IP address at which agents reach the principal, for its certificate, besides those of its Service's load balancer",
    check: (hosts) => {
      const bad = hosts.find((host) => !isHost(host));
      return bad === undefined ? undefined : `${JSON.stringify(bad)} is no host name or IP address`;
    },
  }),
};

/** `argocd-agent pki`: makes and renews a hub's certificates and keys. */
export const pkiCommand = command({
  name: 'pki',
  summary: 'Make the certificates and keys that a principal needs, and renew those that it has made',
  flags: pkiFlags,
  run: async (flags, { signal, stdout }) => {
    const { openHub } = await import('./hub-access.ts');
    const hub = openHub(flags, { signal, report: (line) => stdout(printableLines(`${line}\n`)) });
    await hub.ensurePki(flags['principal-address']);
  },
});
