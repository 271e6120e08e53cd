import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Agent, request as forward } from 'node:https';
import type { AddressInfo } from 'node:net';
import { ArgoCdApi, adminPassword, argoCdAddress } from '../argocd/index.ts';
import { hubEndpoint, type RunningFleet } from '../fleet/index.ts';

/** Where the fleet page is below the front door; the value `principal.fleetPage.path` of the chart. */
export const fleetPagePath = '/fleet/';

/** One address of this machine for a browser: the hub's Argo CD, and the fleet page at a path of it. */
export interface FrontDoor {
  /** Argo CD. It asks for a password. */
  readonly argoCd: string;
  /** The fleet page. Whoever opens this link is signed in, there and at Argo CD, as Argo CD's administrator. */
  readonly fleetPage: string;
  close(): Promise<void>;
}

/**
 * Opens the front door of a hub of this machine: what an Ingress is on another hub. Both are at one host name because a
 * browser sends Argo CD's session nowhere else (docs/fleet-page.md). Only this machine reaches it, so it speaks plain HTTP.
 */
export async function openFrontDoor(fleet: RunningFleet): Promise<FrontDoor> {
  // Whoever knows it may sign in.
  const signIn = `/sign-in/${randomBytes(16).toString('base64url')}`;
  // Both have certificates that this machine does not know.
  const agent = new Agent({ rejectUnauthorized: false, keepAlive: true });
  const server = createServer((request, response) => {
    const answered = request.url === signIn ? startSession(fleet, response) : pass(fleet, agent, request, response);
    answered.catch((error: Error) => refuse(response, error));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    argoCd: `${url}/`,
    fleetPage: url + signIn,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
        agent.destroy();
      }),
  };
}

/** Logs in to Argo CD, and gives the browser the session as Argo CD's own login does. */
async function startSession(fleet: RunningFleet, response: ServerResponse): Promise<void> {
  const api = await ArgoCdApi.login(await argoCdAddress(fleet), 'admin', await adminPassword(fleet.hub.client));
  api.close();
  const cookie = `argocd.token=${api.token}; Path=/; HttpOnly; SameSite=Lax`;
  response.writeHead(303, { location: fleetPagePath, 'set-cookie': cookie, 'cache-control': 'no-store' }).end();
}

/** Sends a request on to whom its path belongs, and the answer back as it arrives. */
async function pass(
  fleet: RunningFleet,
  agent: Agent,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { method, url: path = '/', headers } = request;
  const page = { namespace: 'argocd', name: 'argocd-agent-principal-fleet-page' };
  const to = path.startsWith(fleetPagePath) ? await hubEndpoint(fleet, page, 8446) : await argoCdAddress(fleet);
  await new Promise<void>((resolve, reject) => {
    const sent = forward({ ...to, agent, method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.on('error', () => response.destroy()).pipe(response);
    });
    sent.on('error', reject);
    response.once('close', () => {
      sent.destroy();
      resolve();
    });
    request.pipe(sent);
  });
}

function refuse(response: ServerResponse, error: Error): void {
  if (response.headersSent) {
    response.destroy();
  } else {
    response.writeHead(502, { 'content-type': 'text/plain' }).end(`${error.message}\n`);
  }
}
