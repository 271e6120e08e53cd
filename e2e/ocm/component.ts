import { mkdir, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { join } from 'node:path';
import { Component, freePort, type SharedCluster } from '../testbed/index.ts';
import { toolPath } from '../tools/index.ts';
import { type OcmExecutable, ocmCommand } from './executables.ts';

/** How to run one of OCM's controllers or agents. */
export interface OcmComponentOptions {
  /** The cluster on which it would be a pod, and the namespace and ServiceAccount of that pod. */
  cluster: SharedCluster;
  account: { namespace: string; name: string };
  executable: OcmExecutable;
  /** Its subcommand, and flags that it has for itself. */
  args: readonly [subcommand: 'controller' | 'manager' | 'agent', ...flags: string[]];
  crashed: (error: Error) => void;
}

/** One of OCM's controllers or agents as a process of its own, with the rights that OCM's installation gives it. */
export async function ocmComponent(options: OcmComponentOptions): Promise<Component> {
  const { cluster, account, executable, args, crashed } = options;
  const name = `ocm-${executable}-${args[0]}`;
  const dir = join(cluster.dir, name);
  const port = await freePort();
  const [command, ...first] = await ocmCommand(executable);
  const kubeconfig = await cluster.kubeconfigFor({ serviceAccount: account });
  return new Component({
    name: `${name} of ${cluster.name}`,
    command,
    args: [
      ...first,
      ...args,
      ...['--kubeconfig', kubeconfig, '--namespace', account.namespace],
      ...['--config', await writeConfig(cluster, dir), '--listen', `127.0.0.1:${port}`],
      '--disable-leader-election',
    ],
    env: { ...process.env, POD_NAMESPACE: account.namespace, POD_NAME: name },
    logFile: join(dir, 'log'),
    isReady: (signal) => answers(port, '/healthz', signal),
    crashed,
  });
}

/** Where the server of OCM's webhooks is, and as whom it runs. */
export interface AdmissionOptions {
  hub: SharedCluster;
  port: number;
  namespace: string;
  crashed: (error: Error) => void;
}

/** The server of the webhooks of managed clusters, cluster set bindings and works. The former's account has all rights that it needs. */
export async function admissionServer({ hub, port, namespace, crashed }: AdmissionOptions): Promise<Component> {
  const dir = join(hub.dir, 'ocm-admission');
  await writeCertificate(hub, dir);
  const kubeconfig = await hub.kubeconfigFor({ serviceAccount: { namespace, name: 'registration-webhook-sa' } });
  return new Component({
    name: `ocm-admission of ${hub.name}`,
    command: await toolPath('ocm'),
    args: [...['admission', 'webhook-server', '--kubeconfig', kubeconfig], ...['--certdir', dir, '--port', `${port}`]],
    logFile: join(dir, 'log'),
    isReady: (signal) => answers(port, '/', signal, 404),
    crashed,
  });
}

async function writeConfig(cluster: SharedCluster, dir: string): Promise<string> {
  const { certFile, keyFile } = await writeCertificate(cluster, dir);
  const config = {
    apiVersion: 'operator.openshift.io/v1alpha1',
    kind: 'GenericOperatorConfig',
    servingInfo: { certFile, keyFile },
  };
  const path = join(dir, 'config.yaml');
  await writeFile(path, JSON.stringify(config));
  return path;
}

async function writeCertificate(cluster: SharedCluster, dir: string) {
  await mkdir(dir, { recursive: true });
  const { certificate, key } = await cluster.issueCertificate({ commonName: 'ocm', hosts: ['127.0.0.1', 'localhost'] });
  const [certFile, keyFile] = [join(dir, 'tls.crt'), join(dir, 'tls.key')];
  await Promise.all([writeFile(certFile, certificate), writeFile(keyFile, key, { mode: 0o600 })]);
  return { certFile, keyFile };
}

/** Whether a server on this machine answers with a status. */
function answers(port: number, path: string, signal: AbortSignal, status = 200): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port, path, agent: false, rejectUnauthorized: false, signal };
    const call = request(options, (response) => {
      response.resume();
      resolve(response.statusCode === status);
    });
    call.once('error', reject);
    call.end();
  });
}
