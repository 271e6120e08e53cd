import { expect, test } from 'vitest';
import { createLogger, createLoggers } from './index.ts';

function capture(options: { level?: string | string[]; format?: string }): {
  lines: string[];
  log: ReturnType<typeof createLogger>;
} {
  const lines: string[] = [];
  return {
    lines,
    log: createLogger({ name: 'test', ...options, destination: { write: (line) => void lines.push(line) } }),
  };
}

test('json has the keys and level names of the originals', () => {
  const { lines, log } = capture({ format: 'JSON' });
  log.warn({ agent: 'a', error: new Error('boom') }, 'trouble');
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    level: 'warning',
    module: 'test',
    agent: 'a',
    error: 'boom',
    msg: 'trouble',
    time: expect.stringMatching(/^\d{4}-.*Z$/),
  });
});

test('text is key=value, quoted where needed', () => {
  const { lines, log } = capture({});
  log.info({ application: 'ns/app', reason: 'two words' }, 'synced');
  expect(lines[0]).toMatch(/^time="\S+" level=info msg="synced" module=test application=ns\/app reason="two words"\n$/);
});

test('text of strangers makes no lines and does not steer a terminal', () => {
  const { lines, log } = capture({});
  log.info({ name: 'a\n\u009b2J\u2028\u202e\u{e0001}' }, 'b\r\u001b[2J\u0085\u2066');
  expect(lines[0]?.slice(0, -1)).not.toMatch(/[\p{Cc}\p{Cf}\u2028\u2029]/u);
  expect(lines[0]).toContain('name="a\\n\\u009b2J\\u2028\\u202e\\u{e0001}"');
});

test('levels: a bare one sets the root, unknown components are named and ignored', () => {
  const { lines, log } = capture({ level: ['resource-proxy=debug', 'nonsense=debug', 'warning'] });
  log.info('not shown');
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain('nonsense=debug');
});

test('what does not exist is refused by flag name', () => {
  expect(() => createLogger({ level: 'loud' })).toThrow(/--log-level.*"loud"/);
  expect(() => createLogger({ format: 'xml' })).toThrow(/--log-format.*"xml"/);
});

test('levels of components: their own counts, a bare level counts for those not named before it', () => {
  const lines: string[] = [];
  const loggers = (level: string[]) =>
    createLoggers({ level, destination: { write: (line) => void lines.push(line) } });
  const shown = (level: string[]) => {
    lines.length = 0;
    const { root, component } = loggers(level);
    root.debug('root');
    for (const name of ['grpc-event', 'redis-proxy'] as const) {
      component(name).debug(name);
    }
    return lines.map((line) => /msg="([^"]+)"/.exec(line)?.[1]);
  };
  expect(shown(['grpc-event=debug'])).toEqual(['grpc-event']);
  expect(shown(['debug'])).toEqual(['root', 'grpc-event', 'redis-proxy']);
  expect(shown(['grpc-event=info', 'debug'])).toEqual(['root', 'redis-proxy']);
  expect(shown(['debug', 'grpc-event=info'])).toEqual(['root', 'redis-proxy']);
  expect(lines[1]).toContain('component=redis-proxy');
});

test('levels: panic is refused, an empty entry is info', () => {
  expect(() => createLogger({ level: 'panic' })).toThrow(/"panic"/);
  expect(() => createLogger({ level: [''] })).not.toThrow();
});

test('no peer fills the log: lines of one kind about it are limited, those about others and other lines are not', () => {
  const { lines, log } = capture({});
  const agent = log.child({ agent: 'evil' });
  for (let count = 0; count < 1_000; count++) {
    agent.warn({ bytes: count }, `A message was left out: number ${count}`);
    log.error({ agent: 'evil', count }, "the API server refuses an agent's report");
    log.info({ peer: `10.0.0.1:${count}` }, 'A client left without a call');
  }
  expect(lines.length).toBeGreaterThan(60);
  expect(lines.length).toBeLessThan(150);
  lines.length = 0;
  log.warn({ agent: 'good' }, 'A message was left out: one');
  log.info({ peer: '10.0.0.2:1' }, 'A client left without a call');
  agent.warn({}, 'something else');
  for (let count = 0; count < 100; count++) {
    log.info({ agent: 'evil', peer: '10.0.0.1:1' }, 'An agent is connected');
    log.warn({ application: 'a/b' }, 'not about a peer');
  }
  expect(lines).toHaveLength(203);
});

test.each(['info', 'debug', 'trace'] as const)('an agent does not fill the log with lines of level %s', (level) => {
  const { lines, log } = capture({ level });
  const child = log.child({ agent: 'evil' });
  for (let count = 0; count < 25_000; count++) {
    log[level]({ agent: 'evil', application: `a/${count}` }, 'the agent has an Application that it should not have');
    child[level]({ count }, `made up ${count}: sent to the agent`);
  }
  expect(lines.length).toBeGreaterThan(300);
  expect(lines.length).toBeLessThan(1_200);
  log[level]({ agent: 'good' }, 'sent to the agent');
  expect(lines.at(-1)).toContain('agent=good');
});
