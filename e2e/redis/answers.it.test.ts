import { describe, expect, test } from 'vitest';
import { ask } from './ask.ts';
import { isRedisInstalled, startRedis } from './index.ts';
import { questionGroups } from './questions/index.ts';

// The embedded Redis and the machine's own one are asked the same. The answers are those of the real one.

const isInstalled = await isRedisInstalled();

describe.each(['embedded', 'installed'] as const)('the %s Redis answers', (server) => {
  test.for(questionGroups)('what it is asked about $about', async ({ password, questions }, { skip }) => {
    skip(
      server === 'installed' && !isInstalled,
      'redis-server is not installed (Debian: apt-get install redis-server)',
    );
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
});
