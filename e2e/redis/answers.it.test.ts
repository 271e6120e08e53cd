import { describe, expect, test } from 'vitest';
import { ask } from './ask.ts';
import { type RedisServer, startRedis } from './index.ts';
import { questionGroups } from './questions/index.ts';

// The embedded Redis and the machine's own one are asked the same. The answers are those of the real one.

describe('the embedded Redis answers', () => answers('embedded'));
describe('the installed Redis answers', { tags: 'redis-server' }, () => answers('installed'));

function answers(server: RedisServer): void {
  test.for(questionGroups)('what it is asked about $about', async ({ password, questions }) => {
    const redis = await startRedis({ server, args: password === undefined ? [] : ['--requirepass', password] });
    try {
      const wrong: string[] = [];
      for (const question of questions) {
        const complaint = await ask({ port: redis.port, ...(password !== undefined && { password }) }, question);
        if (complaint !== undefined) {
          wrong.push(`${question.name}: ${complaint}`);
        }
      }
      expect(wrong).toEqual([]);
    } finally {
      await redis.stop();
    }
  });
}
