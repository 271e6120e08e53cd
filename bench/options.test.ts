import { expect, test, vi } from 'vitest';
import { benchOptions } from './options.ts';

const defaults = { agents: 100, output: 'dist', quick: false, from: ['.'] };

test('options have the kinds of their defaults', () => {
  expect(benchOptions([], 'help', defaults)).toEqual(defaults);
  const given = ['--agents', '5', '--output', 'there', '--quick', '--from', 'one', '--from', 'two'];
  expect(benchOptions(given, 'help', defaults)).toEqual({
    agents: 5,
    output: 'there',
    quick: true,
    from: ['one', 'two'],
  });
});

test.each(['many', '-1', ' '])('%j is not a number', (text) => {
  expect(() => benchOptions([`--agents=${text}`], 'help', defaults)).toThrow(
    expect.objectContaining({
      message: `--agents takes a number, not "${text}"`,
      code: expect.stringMatching(/^ERR_PARSE_ARGS/),
    }),
  );
});

test('an option that does not exist is refused, and --help prints the help', () => {
  expect(() => benchOptions(['--other'], 'help', defaults)).toThrow(/--other/);
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  expect(benchOptions(['--help'], 'the help', defaults)).toBeUndefined();
  expect(write).toHaveBeenCalledWith('the help');
  write.mockRestore();
});
