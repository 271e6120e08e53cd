/** Connections that share a limit, by the network of their clients, each network's oldest first. */
export class NetworkShares<Connection> {
  readonly #networks = new Map<string, Set<Connection>>();
  /** In the order in which they came. */
  readonly #all = new Set<Connection>();

  /** How many there are in all. */
  get size(): number {
    return this.#all.size;
  }

  /** The one that came first. */
  get oldest(): Connection | undefined {
    const [first] = this.#all;
    return first;
  }

  /** How many a network has. */
  of(network: string): number {
    return this.#networks.get(network)?.size ?? 0;
  }

  /** Counts a connection. */
  add(network: string, connection: Connection): void {
    const own = this.#networks.get(network) ?? new Set();
    this.#networks.set(network, own.add(connection));
    this.#all.add(connection);
  }

  /** Forgets a connection, if it is counted. */
  delete(network: string, connection: Connection): void {
    const own = this.#networks.get(network);
    if (own?.delete(connection)) {
      this.#all.delete(connection);
      if (own.size === 0) {
        this.#networks.delete(network);
      }
    }
  }

  /**
   * Who makes room for a newcomer: the oldest connection of the network with most, if those are more than the newcomer's network will
   * have. Nobody keeps the others out.
   */
  placeFor(network: string): { readonly network: string; readonly connection: Connection } | undefined {
    let most = this.of(network) + 1;
    let found: { readonly network: string; readonly connections: Set<Connection> } | undefined;
    for (const [other, connections] of this.#networks) {
      if (connections.size > most) {
        most = connections.size;
        found = { network: other, connections };
      }
    }
    const [connection] = found?.connections ?? [];
    return found === undefined || connection === undefined ? undefined : { network: found.network, connection };
  }
}
