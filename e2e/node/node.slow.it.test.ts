import { execFile, spawn } from 'node:child_process';
import { once as happens } from 'node:events';
import { readFile } from 'node:fs/promises';
import { get as getPlain, type IncomingMessage } from 'node:http';
import { get, type RequestOptions } from 'node:https';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../../lib/base/testing.ts';
import {
  configMaps,
  type Deployment,
  deployments,
  events,
  type KubeObject,
  nodes,
  resourceType,
  secrets,
  services,
} from '../../lib/kube/index.ts';
import { troubles } from '../fleet/index.ts';
import { type Cluster, freePort, startCluster } from '../testbed/index.ts';
import { toolPath } from '../tools/index.ts';
import { loopbackAddress, type Node, startNode } from './index.ts';
import { type KubeletContainer, type KubeletPod, type KubeletPodSpec, kubeletPods } from './types.ts';

const namespace = 'default';
const jobs = resourceType<KubeObject & { spec: object; status?: { succeeded?: number } }>({
  group: 'batch',
  version: 'v1',
  kind: 'Job',
  plural: 'jobs',
  namespaced: true,
});

let cluster: Cluster;
let node: Node;

beforeAll(async () => {
  cluster = await startCluster({ name: 'node-test' });
  node = await startNode({ cluster, dir: cluster.dir, backoff: { initialMs: 100, maxMs: 400 } });
});

afterAll(async () => {
  await node?.stop();
  await cluster?.stop();
});

type Part = Omit<Partial<KubeletContainer>, 'name'>;

async function run(name: string, part: Part, spec: Partial<KubeletPodSpec> = {}, labels = {}): Promise<void> {
  const container = { name: 'main', image: 'busybox', ...part };
  await cluster.client.create(kubeletPods, {
    metadata: { name, namespace, labels },
    spec: { terminationGracePeriodSeconds: 1, ...spec, containers: [container] },
  });
}

/** The answer over a connection of its own: one that is kept would lead to the same pod again. */
async function answerOf(url: string): Promise<string> {
  const [response] = (await happens(getPlain(url, { agent: false }), 'response')) as [IncomingMessage];
  return text(response);
}

const shell = (script: string): Part => ({ command: ['sh', '-c', script] });

function podIs(name: string, accept: (pod: KubeletPod) => unknown): Promise<KubeletPod> {
  return until(`pod ${name}`, async () => {
    const pod = await cluster.client.get(kubeletPods, { namespace, name });
    if (!pod || !accept(pod)) {
      throw new Error(`not yet: ${JSON.stringify(pod?.status)}`);
    }
    return pod;
  });
}

const stateOf = (pod: KubeletPod) => pod.status?.containerStatuses?.[0]?.state ?? {};
const isReady = (pod: KubeletPod) => pod.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True');

async function logOf(name: string, query = ''): Promise<string> {
  const response = await cluster.client.request(`/api/v1/namespaces/${namespace}/pods/${name}/log?${query}`);
  return response.body.text();
}

async function outputOf(name: string): Promise<string> {
  await podIs(name, (pod) => pod.status?.phase === 'Succeeded');
  return logOf(name);
}

function hasEvent(about: string, reason: string, text: RegExp): Promise<void> {
  return until(async () => {
    const all = await cluster.client.list(events, { namespace });
    const mine = all.filter((event) => event.regarding?.name === about);
    if (mine.some((event) => event.reason === reason && text.test(event.note ?? ''))) {
      return;
    }
    throw new Error(`no such event: ${JSON.stringify(mine.map((event) => [event.reason, event.note]))}`);
  });
}

function statusOf(url: string, tls: RequestOptions): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    get(url, { ...tls, agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode);
    }).on('error', reject);
  });
}

const once = { restartPolicy: 'Never' };

describe('the node', () => {
  it('is a ready Node with an address, capacity and a lease', async () => {
    const object = await cluster.client.get(nodes, { name: node.name });
    expect(object?.status?.addresses).toContainEqual({ type: 'InternalIP', address: node.address });
    expect(object?.status?.conditions).toContainEqual(expect.objectContaining({ type: 'Ready', status: 'True' }));
    expect(node.address).toMatch(/^127\./);
  });

  it('lets nobody read logs but the API server', async () => {
    const call = fetch(`https://${node.address}:10250/containerLogs/default/x/y`);
    await expect(call).rejects.toThrow();
    const { certificate, key } = await cluster.issueCertificate({ commonName: 'tester' });
    const trusted = { ca: cluster.ca, cert: certificate, key };
    expect(await statusOf(`https://${node.address}:10250/healthz`, trusted)).toBe(200);
    await expect(statusOf(`https://${node.address}:10250/healthz`, { ca: cluster.ca })).rejects.toThrow();
  });

  it('takes its pods with it, however it ends', async () => {
    const child = spawn(process.execPath, [new URL('doomed.ts', import.meta.url).pathname], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await happens(createInterface({ input: child.stdout }), 'line')) as [string];
    const session = `/proc/${line}/stat`;
    // The process becomes the shell after it has entered its container.
    await until(async () => expect(await readFile(session, 'utf8')).toContain('(sh)'));
    child.kill('SIGKILL');
    await until(() => expect(readFile(session)).rejects.toThrow());
  });

  it('leaves a pod for another node unscheduled and says why', async () => {
    await run('elsewhere', shell('true'), { nodeSelector: { disk: 'ssd' } });
    const pod = await podIs('elsewhere', (p) => p.status?.conditions?.some((c) => c.reason === 'Unschedulable'));
    expect(pod.status?.conditions?.[0]?.message).toContain("didn't match Pod's node affinity/selector");
    await cluster.client.mergePatch(nodes, { name: node.name }, { metadata: { labels: { disk: 'ssd' } } });
    await podIs('elsewhere', (p) => p.spec.nodeName === node.name);
  });
});

describe('a workload', () => {
  const labels = { app: 'web' };
  const deployment: Deployment = {
    metadata: { name: 'web', namespace },
    spec: {
      replicas: 2,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          containers: [
            {
              name: 'web',
              image: 'nginx:1.27',
              ports: [{ containerPort: 80, name: 'http' }],
              readinessProbe: { httpGet: { port: 'http', path: '/' } },
            },
          ],
        },
      },
    },
  };

  it('becomes available, and its Service and load balancer reach it', async () => {
    await cluster.client.create(deployments, deployment);
    const ports = [{ port: 8000, targetPort: 'http' }];
    await cluster.client.create(services, {
      metadata: { name: 'web', namespace },
      spec: { type: 'LoadBalancer', selector: labels, ports },
    });
    await until(async () => {
      const now = await cluster.client.get(deployments, { namespace, name: 'web' });
      expect(now?.status?.availableReplicas).toBe(2);
    });
    const ip = await until('an address of the load balancer', async () => {
      const service = await cluster.client.get(services, { namespace, name: 'web' });
      return service?.status?.loadBalancer?.ingress?.[0]?.ip;
    });
    // A pod counts as available before its endpoint is known to everybody.
    await until(async () => {
      const answers = await Promise.all([1, 2, 3, 4].map(() => answerOf(`http://${ip}:8000/x`)));
      expect(new Set(answers).size).toBe(2);
    });

    await run('caller', { image: 'quay.io/open-cluster-management/argocd-fleet', ...callsWeb }, once);
    expect(await outputOf('caller')).toMatch(/^GET \/names\n$|GET \/names on web-/);
  });

  const callsWeb: Part = {
    command: ['node', '-e'],
    args: [
      "for (const name of ['web', 'web.default', 'web.default.svc.cluster.local'])" +
        " await fetch('http://' + name + ':8000/');" +
        " console.log((await (await fetch('http://' + process.env.WEB_SERVICE_HOST + ':8000/names')).text()).trim())",
    ],
  };

  it('comes back at once when its process is killed, and its Service follows', async () => {
    const list = await cluster.client.list(kubeletPods, { namespace, labelSelector: 'app=web' });
    const name = list[0]?.metadata.name ?? '';
    const pid = node.kill(namespace, name);
    expect(pid).toBeGreaterThan(0);
    const pod = await podIs(name, (p) => p.status?.containerStatuses?.[0]?.restartCount === 1 && isReady(p));
    expect(pod.status?.containerStatuses?.[0]?.lastState.terminated).toMatchObject({ exitCode: 137, signal: 9 });
    expect(node.pidOf(namespace, name)).not.toBe(pid);
    expect(await logOf(name, 'previous=true')).toContain('listening');
  });

  it('is refused connections when nothing is ready behind its Service', async () => {
    await cluster.client.mergePatch(deployments, { namespace, name: 'web' }, { spec: { replicas: 0 } });
    await until(async () => {
      const error = await fetch(`http://${node.serviceAddress(namespace, 'web')}:8000/`).catch((e: Error) => e.cause);
      expect(error).toMatchObject({ code: 'ECONNREFUSED' });
      expect(await cluster.client.list(kubeletPods, { namespace, labelSelector: 'app=web' })).toHaveLength(0);
    });
  });
});

describe('environment and volumes', () => {
  it('come from the API as a kubelet brings them', async () => {
    await cluster.client.create(secrets, {
      metadata: { name: 'all', namespace },
      stringData: { a: 'one', b: 'two' },
    });
    await cluster.client.create(configMaps, { metadata: { name: 'all', namespace }, data: { c: 'three' } });
    const script = [
      'echo $A $FROM_c $EXPANDED $NODE $NONE-$LITERAL $1',
      'cat /s/renamed /c/c /d/labels',
      'stat -L -c %a /s/renamed',
      'touch /s/x 2>/dev/null || echo read-only',
      'cd /e && touch y && id -u && stat -c %g y',
      'ls /var/run/secrets/kubernetes.io/serviceaccount | sort | tr "\\n" " "',
    ].join('\n');
    const pod: Partial<KubeletPodSpec> = {
      ...once,
      securityContext: { runAsUser: 1234, runAsNonRoot: true, fsGroup: 777 },
      volumes: [
        { name: 's', secret: { secretName: 'all', items: [{ key: 'b', path: 'renamed' }], defaultMode: 0o400 } },
        { name: 'c', configMap: { name: 'all' } },
        { name: 'd', downwardAPI: { items: [{ path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }] } },
        { name: 'e', emptyDir: {} },
      ],
    };
    const part: Part = {
      command: ['sh', '-c', script, 'sh'],
      args: ['$(A)-$$(A)'],
      env: [
        { name: 'A', valueFrom: { secretKeyRef: { name: 'all', key: 'a' } } },
        { name: 'EXPANDED', value: '$(A)+$(FROM_c)' },
        { name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
        { name: 'NONE', valueFrom: { configMapKeyRef: { name: 'missing', key: 'x', optional: true } } },
        { name: 'LITERAL', value: '$(UNKNOWN)' },
      ],
      envFrom: [{ prefix: 'FROM_', configMapRef: { name: 'all' } }],
      volumeMounts: [
        { name: 's', mountPath: '/s' },
        { name: 'c', mountPath: '/c' },
        { name: 'd', mountPath: '/d' },
        { name: 'e', mountPath: '/e' },
      ],
    };
    await run('volumes', part, pod, { tier: 'x' });
    expect((await outputOf('volumes')).trimEnd().split('\n')).toEqual([
      `one three one+three ${node.name} -$(UNKNOWN) one-$(A)`,
      'twothreetier="x"440',
      'read-only',
      '1234',
      '777',
      'ca.crt namespace token',
    ]);
  });

  it('let a program reach the API server with its service account, and see changed Secrets', async () => {
    await cluster.client.create(secrets, { metadata: { name: 'live', namespace }, stringData: { k: 'before' } });
    const script = `
      const fs = require('node:fs');
      const https = require('node:https');
      const folder = '/var/run/secrets/kubernetes.io/serviceaccount/';
      const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = process.env;
      const ask = (host, port) => https.get({
        host, port, path: '/apis/authentication.k8s.io/v1', ca: fs.readFileSync(folder + 'ca.crt'),
        headers: { authorization: 'Bearer ' + fs.readFileSync(folder + 'token') },
      }, (response) => { response.resume(); console.log(host.replace(/^[0-9.]+$/, 'ip'), response.statusCode); });
      ask(host, port);
      ask('kubernetes.default.svc', 443);
      const wait = setInterval(() => {
        if (fs.readFileSync('/live/k', 'utf8') !== 'after') return;
        console.log('changed');
        clearInterval(wait);
      }, 50);`;
    await run(
      'in-cluster',
      {
        image: 'quay.io/open-cluster-management/argocd-fleet',
        command: ['node', '-e', script],
        volumeMounts: [{ name: 'live', mountPath: '/live' }],
      },
      { ...once, volumes: [{ name: 'live', secret: { secretName: 'live' } }] },
    );
    await podIs('in-cluster', (pod) => stateOf(pod).running);
    await cluster.client.mergePatch(secrets, { namespace, name: 'live' }, { stringData: { k: 'after' } });
    expect((await outputOf('in-cluster')).split('\n').sort()).toEqual([
      '',
      'changed',
      'ip 200',
      'kubernetes.default.svc 200',
    ]);
  });

  it('keep a pod waiting until they exist', async () => {
    await run(
      'waits',
      { ...shell('cat /late/k'), volumeMounts: [{ name: 'late', mountPath: '/late' }] },
      { ...once, volumes: [{ name: 'late', secret: { secretName: 'late' } }] },
    );
    await hasEvent('waits', 'FailedMount', /secret "late" not found/);
    const pod = await podIs('waits', (p) => stateOf(p).waiting);
    expect(stateOf(pod).waiting?.reason).toBe('ContainerCreating');
    await cluster.client.create(secrets, { metadata: { name: 'late', namespace }, stringData: { k: 'here' } });
    expect(await outputOf('waits')).toBe('here\n');
  });
});

describe('what a real cluster refuses', () => {
  it.each<[string, Part, string, RegExp]>([
    ['an image that nobody has', { image: 'quay.io/no/such:1' }, 'ImagePullBackOff', /quay.io\/no\/such:1: not found/],
    ['an image reference that is none', { image: 'No/Such' }, 'InvalidImageName', /invalid reference format/],
    [
      'root where runAsNonRoot is asked for',
      { securityContext: { runAsNonRoot: true } },
      'CreateContainerConfigError',
      /container has runAsNonRoot and image will run as root/,
    ],
    [
      'a key that a ConfigMap lacks',
      { env: [{ name: 'A', valueFrom: { configMapKeyRef: { name: 'kube-root-ca.crt', key: 'nope' } } }] },
      'CreateContainerConfigError',
      /couldn't find key nope in ConfigMap default\/kube-root-ca.crt/,
    ],
    [
      'a Secret that is missing',
      { envFrom: [{ secretRef: { name: 'nope' } }] },
      'CreateContainerConfigError',
      /secret "nope" not found/,
    ],
    ['a command that the image lacks', { command: ['nope'] }, 'CrashLoopBackOff', /exec: "nope": executable file not/],
  ])('%s', async (what, part, reason, message) => {
    const name = what.replaceAll(/\W+/g, '-').toLowerCase();
    await run(name, part);
    const pod = await podIs(name, (p) => stateOf(p).waiting?.reason === reason);
    const status = pod.status?.containerStatuses?.[0];
    expect(`${status?.state.waiting?.message} ${status?.lastState.terminated?.message}`).toMatch(message);
    await hasEvent(name, 'Failed', message);
  });

  it('a write to a read-only root file system', async () => {
    const securityContext = { readOnlyRootFilesystem: true };
    await run('read-only', { ...shell('touch /tmp/x'), securityContext }, once);
    await podIs('read-only', (pod) => pod.status?.phase === 'Failed');
    expect(await logOf('read-only')).toContain('Read-only file system');
  });
});

describe('the life of a pod', () => {
  it('runs init containers in order, then the rest; a Job succeeds', async () => {
    const volumeMounts = [{ name: 'shared', mountPath: '/shared' }];
    const step = (name: string, script: string) => ({ name, image: 'busybox', ...shell(script), volumeMounts });
    await cluster.client.create(jobs, {
      metadata: { name: 'steps', namespace },
      spec: {
        template: {
          spec: {
            restartPolicy: 'Never',
            volumes: [{ name: 'shared', emptyDir: {} }],
            initContainers: [step('one', 'echo 1 > /shared/a'), step('two', 'cat /shared/a > /shared/b')],
            containers: [step('main', 'cat /shared/b')],
          },
        },
      },
    });
    await until(async () =>
      expect((await cluster.client.get(jobs, { namespace, name: 'steps' }))?.status?.succeeded).toBe(1),
    );
    const [pod] = await cluster.client.list(kubeletPods, { namespace, labelSelector: 'job-name=steps' });
    expect(await logOf(pod?.metadata.name ?? '')).toBe('1\n');
  });

  it('backs off from a container that keeps failing, and shows it', async () => {
    await run('crashes', shell('echo attempt; exit 7'));
    const pod = await podIs(
      'crashes',
      (p) => stateOf(p).waiting && (p.status?.containerStatuses?.[0]?.restartCount ?? 0) > 2,
    );
    expect(stateOf(pod).waiting?.reason).toBe('CrashLoopBackOff');
    expect(pod.status?.containerStatuses?.[0]?.lastState.terminated).toMatchObject({ exitCode: 7, reason: 'Error' });
    expect(pod.status?.phase).toBe('Running');
    const logs = await troubles([{ name: 'here', client: cluster.client, node }]);
    expect(logs).toMatch(
      new RegExp(
        `--- here: ${namespace}/crashes Running\n(.+: .+\n)*BackOff: .+\n(.+: .+\n)*main, \\d+ restarts: .+\nattempt`,
      ),
    );
  });

  it('forwards no ports for kubectl, which says where the pod is reached instead', async () => {
    await run('unforwarded', shell('sleep 60'));
    const pod = await podIs('unforwarded', (one) => stateOf(one).running);
    const address = loopbackAddress(pod.status?.podIP ?? '');
    const args = ['port-forward', '--namespace', namespace, 'pod/unforwarded', `${await freePort()}:80`];
    const command = promisify(execFile)(await toolPath('kubectl'), [...args, '--kubeconfig', cluster.kubeconfig]);
    await expect(command).rejects.toThrow(
      `this node forwards no ports over SPDY: its pod "unforwarded" has the address ${address}`,
    );
  });

  it('restarts a container whose liveness probe fails, with its grace period', async () => {
    const livenessProbe = {
      exec: { command: ['test', '!', '-e', '/tmp/sick'] },
      periodSeconds: 1,
      failureThreshold: 1,
    };
    await run('sick', { ...shell('trap "" TERM; sleep 1; touch /tmp/sick; sleep 60 & wait; sleep 60'), livenessProbe });
    await podIs('sick', (p) => (p.status?.containerStatuses?.[0]?.restartCount ?? 0) > 0);
    await hasEvent('sick', 'Unhealthy', /Liveness probe failed/);
  });

  it('ends with SIGTERM, and what runs disappears with the object', async () => {
    await run('leaves', shell('trap "echo bye; exit 0" TERM; echo up; while :; do sleep 0.1; done'), {
      terminationGracePeriodSeconds: 20,
    });
    await podIs('leaves', (pod) => stateOf(pod).running);
    await until(async () => expect(await logOf('leaves')).toBe('up\n'));
    const pid = node.pidOf(namespace, 'leaves');
    const follow = logOf('leaves', 'follow=true');
    await cluster.client.delete(kubeletPods, { namespace, name: 'leaves' });
    expect(await follow).toBe('up\nbye\n');
    await until(async () => {
      expect(await cluster.client.get(kubeletPods, { namespace, name: 'leaves' })).toBeUndefined();
      await expect(readFile(`/proc/${pid}/stat`)).rejects.toThrow();
    });
  });

  it('goes on while the API server is away', async () => {
    await run('survivor', shell('echo up; sleep 600'));
    await podIs('survivor', (pod) => stateOf(pod).running);
    await cluster.apiServer.kill();
    const before = node.kill(namespace, 'survivor');
    await until(() => expect(node.pidOf(namespace, 'survivor') ?? before).not.toBe(before));
    await cluster.apiServer.restart();
    await podIs('survivor', (pod) => pod.status?.containerStatuses?.[0]?.restartCount === 1);
  });

  it('starts afresh after the node itself was gone, at the same addresses', async () => {
    const { address } = node;
    const web = node.serviceAddress(namespace, 'web');
    await node.stop();
    node = await startNode({ cluster, dir: cluster.dir });
    expect(node.address).toBe(address);
    expect(node.serviceAddress(namespace, 'web')).toBe(web);
    await podIs('survivor', (pod) => pod.status?.containerStatuses?.[0]?.restartCount === 2 && stateOf(pod).running);
  });
});
