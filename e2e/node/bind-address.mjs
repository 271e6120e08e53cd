/*
 * Loaded before a program that runs as a pod. All pods share the machine's network, so a program that listens on all
 * addresses must get the pod's address only. What it binds explicitly, loopback included, stays as it is: a program
 * that listens on 127.0.0.1 cannot be reached from outside its pod here either.
 *
 * Plain JavaScript: for TypeScript, Node.js would load a compiler into each of these programs, 0.3 s of CPU time.
 */
import { Server } from 'node:net';

const address = process.env.POD_BIND_ADDRESS;
delete process.env.POD_BIND_ADDRESS;

/** @param {unknown} host */
const isAny = (host) => host === undefined || host === null || host === '' || host === '0.0.0.0' || host === '::';

if (address) {
  const listen = Server.prototype.listen;
  /**
   * @this {Server}
   * @param {any[]} args
   */
  Server.prototype.listen = function listenOnPod(...args) {
    const [first, second, ...rest] = args;
    if (typeof first === 'object' && first !== null) {
      if (first.port === undefined || !isAny(first.host)) {
        return listen.apply(this, args);
      }
      return listen.call(this, { ...first, host: address, ipv6Only: false }, ...args.slice(1));
    }
    if (typeof first === 'number' || (typeof first === 'string' && /^\d+$/.test(first))) {
      if (typeof second !== 'string') {
        return listen.call(this, first, address, ...args.slice(1));
      }
      if (isAny(second)) {
        return listen.call(this, first, address, ...rest);
      }
    }
    return listen.apply(this, args);
  };
}
