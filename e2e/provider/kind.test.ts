import { describe, expect, it } from 'vitest';
import type { Runner } from '../image/index.ts';
import { testProvider } from './choice.ts';
import { type KindEngine, parseHubAccess } from './kind-commands.ts';
import { KindMachine } from './kind-machine.ts';
import { checkKind } from './requirements.ts';

const missing = (command: string) => Object.assign(new Error(`spawn ${command} ENOENT`), { code: 'ENOENT' });
const machineWith =
  (...present: string[]): Runner =>
  async (command) => {
    if (present.includes(command)) {
      return 'well';
    }
    throw missing(command);
  };

describe('what the kind provider needs', () => {
  it('is named at once, with what to do instead', async () => {
    await expect(checkKind(machineWith())).rejects.toThrow(
      [
        'the provider kind needs what is not here:',
        '  a container engine: docker: not installed; podman: not installed',
        '  kind: not installed (https://kind.sigs.k8s.io)',
        '  clusteradm: not installed (https://open-cluster-management.io)',
        'Without a container engine, the usual provider (local) runs the same on plain processes.',
      ].join('\n'),
    );
    await expect(checkKind(machineWith('docker', 'kind'))).rejects.toThrow(/not here:\n {2}clusteradm: not installed/);
  });

  it('is Docker or Podman, kind and clusteradm, and no more', async () => {
    expect(await checkKind(machineWith('docker', 'podman', 'kind', 'clusteradm'))).toBe('docker');
    expect(await checkKind(machineWith('podman', 'kind', 'clusteradm'))).toBe('podman');
    await expect(checkKind(machineWith('buildah', 'kind', 'clusteradm'))).rejects.toThrow(/podman: not installed/);
  });

  it('may be asked for by the environment, for end-to-end tests', () => {
    expect(testProvider({})).toBe('local');
    expect(testProvider({ TEST_PROVIDER: 'kind' })).toBe('kind');
    expect(() => testProvider({ TEST_PROVIDER: 'minikube' })).toThrow(
      'TEST_PROVIDER must be local or kind, not minikube',
    );
  });
});

/** A machine that carries out nothing and remembers what it was to do. */
function recorder(answers: Record<string, string | Error> = {}) {
  const lines: string[] = [];
  const runner: Runner = async (command, args) => {
    const line = [command, ...args].join(' ');
    lines.push(line);
    const [, answer = ''] = Object.entries(answers).find(([part]) => line.includes(part)) ?? [];
    if (answer instanceof Error) {
      throw answer;
    }
    return answer;
  };
  const machine = (engine: KindEngine, signal?: AbortSignal) =>
    new KindMachine({ engine, runner, folder: '/f', logs: '/logs', project: '/p', image: 'quay.io/a/b:1', signal });
  return { lines, machine };
}

const access = '{\n  "hub-apiserver": "https://127.0.0.1:40001",\n  "hub-token": "abc"\n}\n';
const clusteradm = [
  'clusteradm init --wait --kubeconfig /f/hub.kubeconfig',
  'clusteradm get token --output json --kubeconfig /f/hub.kubeconfig',
  'clusteradm join --cluster-name cluster1 --hub-apiserver https://127.0.0.1:40001 --hub-token abc ' +
    '--force-internal-endpoint-lookup --wait --kubeconfig /f/cluster1.kubeconfig',
  'clusteradm accept --clusters cluster1 --wait --kubeconfig /f/hub.kubeconfig',
];

/** All that is done for a hub and one managed cluster, from the first command to the last. */
async function wholeStory(machine: KindMachine): Promise<string> {
  await machine.build();
  const hub = await machine.create('hub');
  const address = await machine.address();
  await machine.initHub(hub);
  await machine.join('cluster1', await machine.create('cluster1'), hub);
  expect(await machine.logs()).toBe('/logs');
  await machine.delete();
  return address;
}

describe('a fleet of kind', () => {
  it('is made with Docker by these commands', async () => {
    const { lines, machine } = recorder({ 'get token': access, 'network inspect': 'fc00:f853::1 172.18.0.1 ' });
    expect(await wholeStory(machine('docker'))).toBe('172.18.0.1');
    expect(lines[0]).toMatch(/^docker build .*--tag quay\.io\/a\/b:1 \/p$/);
    const [init = '', ...join] = clusteradm;
    expect(lines.slice(1)).toEqual([
      'docker save --output /f/image.tar quay.io/a/b:1',
      'kind create cluster --name hub --kubeconfig /f/hub.kubeconfig --wait 180s',
      'kind load image-archive /f/image.tar --name hub',
      'docker network inspect kind --format {{range .IPAM.Config}}{{.Gateway}} {{end}}',
      init,
      'kind create cluster --name cluster1 --kubeconfig /f/cluster1.kubeconfig --wait 180s',
      'kind load image-archive /f/image.tar --name cluster1',
      ...join,
      'kind export logs --name hub /logs/hub',
      'kind export logs --name cluster1 /logs/cluster1',
      'kind delete cluster --name cluster1',
      'kind delete cluster --name hub',
    ]);
  });

  it('is made with Podman by the same, which kind is told of', async () => {
    const { lines, machine } = recorder({ 'get token': access, 'network inspect': '10.89.0.1 \n' });
    expect(await wholeStory(machine('podman'))).toBe('10.89.0.1');
    expect(lines[0]).toMatch(/^podman build .*--tag quay\.io\/a\/b:1 \/p$/);
    expect(lines).toContain('podman save --format docker-archive --output /f/image.tar quay.io/a/b:1');
    expect(lines).toContain('podman network inspect kind --format {{range .Subnets}}{{.Gateway}} {{end}}');
    expect(lines.filter((line) => /\bkind (create|load|delete|export)/.test(line))).toHaveLength(8);
    expect(lines.filter((line) => line.startsWith('kind '))).toEqual([]);
    expect(lines).toContain('env KIND_EXPERIMENTAL_PROVIDER=podman kind delete cluster --name hub');
    expect(lines).toEqual(expect.arrayContaining(clusteradm));
  });

  it('is removed whole, also what failed halfway or was called off, and what is left is named', async () => {
    const stop = new AbortController();
    const { lines, machine } = recorder({
      'load image-archive /f/image.tar --name two': new Error('no space left'),
      'delete cluster --name one': new Error('no such container'),
    });
    const clusters = machine('docker', stop.signal);
    await clusters.create('one');
    await expect(clusters.create('two')).rejects.toThrow('no space left');
    stop.abort(new Error('called off'));
    await expect(clusters.create('three')).rejects.toThrow('called off');
    await expect(clusters.delete()).rejects.toThrow('cluster one: no such container');
    expect(lines.filter((line) => line.startsWith('kind delete'))).toEqual([
      'kind delete cluster --name three',
      'kind delete cluster --name two',
      'kind delete cluster --name one',
    ]);
  });

  it('needs an address under which its clusters reach this machine', async () => {
    const { machine } = recorder({ 'network inspect': 'fc00:f853::1 \n' });
    await expect(machine('docker').address()).rejects.toThrow(
      'the network of kind has no gateway of IPv4: fc00:f853::1',
    );
  });
});

describe('the way into the hub that clusteradm prints', () => {
  it('is read, whatever stands before it', () => {
    const wanted = { apiServer: 'https://127.0.0.1:40001', token: 'abc' };
    expect(parseHubAccess(access)).toEqual(wanted);
    expect(parseHubAccess(`The token has been created.\n${access}`)).toEqual(wanted);
  });

  it.each(['{}', 'token=secret\nplease log on spoke and run:\nclusteradm join', '{"hub-token":"secret"}', ''])(
    'or is missed without being quoted: %s',
    (text) => {
      expect(() => parseHubAccess(text)).toThrow(/^clusteradm get token --output json printed no hub-token/);
      expect(() => parseHubAccess(text)).not.toThrow(/secret/);
    },
  );
});
