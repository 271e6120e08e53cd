import { describe, expect, it } from 'vitest';
import type { Runner } from '../image/index.ts';
import { internalServer, kindCommands, parseToken } from './kind-commands.ts';
import { checkKind } from './requirements.ts';

const machine =
  (...present: string[]): Runner =>
  async (command) => {
    if (present.includes(command)) return 'well';
    throw Object.assign(new Error(`spawn ${command} ENOENT`), { code: 'ENOENT' });
  };

describe('the kind provider', () => {
  it('says at once everything that is missing, and what to do instead', async () => {
    await expect(checkKind(machine())).rejects.toThrow(
      [
        '--provider kind needs what is not here:',
        '  a container engine: docker: not installed',
        '  kind: not installed (https://kind.sigs.k8s.io)',
        '  clusteradm: not installed (https://open-cluster-management.io)',
        'Without a container engine, the usual provider (--provider local) runs the same on plain processes.',
      ].join('\n'),
    );
    await expect(checkKind(machine('docker', 'kind'))).rejects.toThrow(/not here:\n {2}clusteradm: not installed/);
  });

  it('wants Docker, kind and clusteradm, and no more', async () => {
    await expect(checkKind(machine('docker', 'kind', 'clusteradm'))).resolves.toBeUndefined();
    await expect(checkKind(machine('podman', 'kind', 'clusteradm'))).rejects.toThrow(/docker: not installed/);
  });

  it('calls kind and clusteradm', () => {
    const lines = [
      kindCommands.create('hub', '/f/hub'),
      kindCommands.load('a/b:1', 'hub'),
      kindCommands.initHub('/f/hub'),
      kindCommands.token('/f/hub'),
      kindCommands.join('cluster1', '/f/cluster1', { apiServer: internalServer('hub'), token: 'abc' }),
      kindCommands.accept('cluster1', '/f/hub'),
      kindCommands.delete('cluster1'),
    ];
    expect(lines.map((line) => line.join(' '))).toEqual([
      'kind create cluster --name hub --kubeconfig /f/hub --wait 180s',
      'kind load docker-image a/b:1 --name hub',
      'clusteradm init --wait --kubeconfig /f/hub',
      'clusteradm get token --output json --kubeconfig /f/hub',
      'clusteradm join --cluster-name cluster1 --hub-apiserver https://hub-control-plane:6443 --hub-token abc ' +
        '--force-internal-endpoint-lookup --wait --kubeconfig /f/cluster1',
      'clusteradm accept --clusters cluster1 --wait --kubeconfig /f/hub',
      'kind delete cluster --name cluster1',
    ]);
  });

  it('reads the token that clusteradm prints', () => {
    expect(parseToken('{"hub-apiserver":"https://127.0.0.1:1","hub-token":"abc"}')).toEqual({ token: 'abc' });
    expect(() => parseToken('{}')).toThrow('clusteradm get token printed no hub-token');
  });
});
