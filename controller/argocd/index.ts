export { type ArgoCdDeps, RestartRefusedError, settleArgoCd } from './settle.ts';
export { namespacesWish, redisWish, type Wish } from './wishes.ts';
