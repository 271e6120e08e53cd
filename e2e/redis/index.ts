export { type Redis, startRedis } from './start.ts';
