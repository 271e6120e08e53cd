/*
 * Loaded before a program that runs as a pod. All pods share the machine's network, so a program that listens on all
 * addresses must get the pod's address only. What it binds explicitly, loopback included, stays as it is: a program
 * that listens on 127.0.0.1 cannot be reached from outside its pod here either.
 */
import { type ListenOptions, Server } from 'node:net';

const address = process.env.POD_BIND_ADDRESS;
delete process.env.POD_BIND_ADDRESS;

function isAny(host: unknown): boolean {
  return host === undefined || host === null || host === '' || host === '0.0.0.0' || host === '::';
}

if (address) {
  const listen = Server.prototype.listen as (this: Server, ...args: unknown[]) => Server;
  const listenOnPod = function (this: Server, ...args: unknown[]): Server {
    const [first, second, ...rest] = args;
    if (typeof first === 'object' && first !== null) {
      const options = first as ListenOptions;
      if (options.port === undefined || !isAny(options.host)) {
        return listen.call(this, ...args);
      }
      return listen.call(this, { ...options, host: address, ipv6Only: false }, ...args.slice(1));
    }
    if (typeof first === 'number' || (typeof first === 'string' && /^\d+$/.test(first))) {
      if (typeof second !== 'string') {
        return listen.call(this, first, address, ...args.slice(1));
      }
      if (isAny(second)) {
        return listen.call(this, first, address, ...rest);
      }
    }
    return listen.call(this, ...args);
  };
  Server.prototype.listen = listenOnPod as Server['listen'];
}
