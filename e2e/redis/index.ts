export { type Redis, type RedisOptions, type RedisServer, startRedis } from './start.ts';
