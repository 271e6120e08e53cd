import type { Server } from 'node:net';

/**
 * The loopback addresses of one node: a block of 1024 that no other node on this machine uses, however many testbeds
 * run. The lock is the kubelet's own listening socket on the block's first address, so a crash cannot leave it taken.
 *
 * The API server refuses loopback addresses in Endpoints and EndpointSlices. What the cluster is told is therefore the
 * same address with 10 in front: a pod with the IP 10.20.4.7 is reached at 127.20.4.7.
 */
export class AddressBlock {
  readonly #second: number;
  readonly #third: number;
  readonly #used = new Set<number>();
  #next = 2;

  constructor(second: number, third: number) {
    this.#second = second;
    this.#third = third;
  }

  /** The node's own address. */
  get node(): string {
    return this.#at(1);
  }

  /** Takes an address; the one that was freed longest ago comes last. */
  take(): string {
    for (let i = 0; i < size; i++) {
      const candidate = this.#next;
      this.#next = candidate + 1 >= size ? 2 : candidate + 1;
      if (this.#used.has(candidate) || candidate % 256 === 0 || candidate % 256 === 255) {
        continue;
      }
      this.#used.add(candidate);
      return this.#at(candidate);
    }
    throw new Error(`the node has no free address left in 127.${this.#second}.${this.#third}.0/22`);
  }

  /** Takes a given address; undefined when it is not of this block or taken. */
  takeThis(address: string): string | undefined {
    const index = this.#indexOf(address);
    if (index < 2 || index >= size || this.#at(index) !== address || this.#used.has(index)) {
      return undefined;
    }
    this.#used.add(index);
    return address;
  }

  /** Gives an address back. */
  free(address: string): void {
    this.#used.delete(this.#indexOf(address));
  }

  #indexOf(address: string): number {
    const [, , third = '0', fourth = '0'] = address.split('.');
    return (Number(third) - this.#third) * 256 + Number(fourth);
  }

  #at(index: number): string {
    return `127.${this.#second}.${this.#third + (index >> 8)}.${index & 255}`;
  }
}

const size = 1024;

/** The address that the cluster is told for a loopback address. */
export function clusterAddress(loopback: string): string {
  return loopback.replace(/^127\./, '10.');
}

/** Where an address that the cluster was told for a pod is reached on this machine. */
export function loopbackAddress(told: string): string {
  return told.replace(/^10\./, '127.');
}

/**
 * Finds a free block and holds it by making `server` listen on its first address.
 *
 * @param before the node address of an earlier run, whose block is taken if it is free
 * @throws when no block is free, or the server cannot listen for another reason than a taken address
 */
export async function claimBlock(server: Server, port: number, before?: string): Promise<AddressBlock> {
  const parts = /^127\.(\d+)\.(\d+)\.1$/.exec(before ?? '');
  if (parts) {
    const block = new AddressBlock(Number(parts[1]), Number(parts[2]));
    if (await listen(server, port, block.node)) {
      return block;
    }
  }
  for (let attempt = 0; attempt < 200; attempt++) {
    const second = 16 + Math.floor(Math.random() * 224);
    const third = Math.floor(Math.random() * 63) * 4;
    const block = new AddressBlock(second, third);
    if (await listen(server, port, block.node)) {
      return block;
    }
  }
  throw new Error('no free block of loopback addresses was found for the node');
}

function listen(server: Server, port: number, host: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const failed = (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') {
        resolve(false);
      } else {
        reject(error);
      }
    };
    server.once('error', failed);
    server.listen({ port, host }, () => {
      server.off('error', failed);
      resolve(true);
    });
  });
}
