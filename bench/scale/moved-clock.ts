/*
 * Loaded before a program (`--import`): SIGUSR2 moves the clock that JavaScript reads an hour ahead, and the next one back.
 * OpenSSL, which checks certificates, keeps the machine's time; so do timers, which no clock moves.
 */
const hourMs = 3_600_000;
let aheadMs = 0;
process.on('SIGUSR2', () => {
  aheadMs = aheadMs === 0 ? hourMs : 0;
});

const RealDate = Date;
const now = () => RealDate.now() + aheadMs;
globalThis.Date = new Proxy(RealDate, {
  construct: (target, args, newTarget) => Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
  apply: () => new RealDate(now()).toString(),
  get: (target, property, receiver) => (property === 'now' ? now : Reflect.get(target, property, receiver)),
});
