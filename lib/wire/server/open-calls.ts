import type { ServerConnection } from '../grpc/server/server.ts';
import type { ServerCall } from '../grpc/server/server-call.ts';

/** Calls of an agent with its token, on all its connections: its event stream, and live logs and terminals of many users. */
const mostCalls = 1_000;
/** Connections of an agent. It needs one; over WebSocket each call has one of its own. */
const mostConnections = 256;
/** Requests for one answer (logins, renewals, versions) on one connection. */
const mostRequests = 16;

/**
 * Limits what an agent has open at the same time: each call and each connection takes memory until it ends, and its agent alone
 * decides when that is.
 *
 * In plaintext, a connection is that of a proxy, which may carry calls of many agents: then only calls are limited.
 */
export class OpenCalls {
  readonly #calls = new Map<string, number>();
  readonly #connections = new Map<string, Set<ServerConnection>>();
  readonly #requests = new WeakMap<ServerConnection, number>();

  /** Counts a call, and its connection, until they end. Returns why the agent may not have them; undefined when it may. */
  admit(agent: string, call: ServerCall, connection: ServerConnection): string | undefined {
    const calls = this.#calls.get(agent) ?? 0;
    if (calls >= mostCalls) {
      return `it has ${mostCalls} calls open`;
    }
    const connections = this.#connections.get(agent) ?? new Set();
    if (connection.encrypted && !connections.has(connection)) {
      if (connections.size >= mostConnections) {
        return `it has ${mostConnections} connections`;
      }
      this.#connections.set(agent, connections.add(connection));
      connection.onClose(() => {
        connections.delete(connection);
        if (connections.size === 0 && this.#connections.get(agent) === connections) {
          this.#connections.delete(agent);
        }
      });
    }
    this.#calls.set(agent, calls + 1);
    call.onOver(() => {
      const left = (this.#calls.get(agent) ?? 0) - 1;
      if (left > 0) {
        this.#calls.set(agent, left);
      } else {
        this.#calls.delete(agent);
      }
    });
    return undefined;
  }

  /** Counts a request for one answer until it ends; false when there are too many on the connection. */
  admitRequest(call: ServerCall, connection: ServerConnection): boolean {
    if (!connection.encrypted) {
      return true;
    }
    const requests = this.#requests.get(connection) ?? 0;
    if (requests >= mostRequests) {
      return false;
    }
    this.#requests.set(connection, requests + 1);
    call.onOver(() => this.#requests.set(connection, (this.#requests.get(connection) ?? 1) - 1));
    return true;
  }
}
