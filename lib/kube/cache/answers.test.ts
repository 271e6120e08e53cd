import { expect, test } from 'vitest';
import { Answers } from './answers.ts';

const at = (version: number, uid = 'u') => ({ metadata: { name: uid, uid, resourceVersion: String(version) } });
const gone = (answers: Answers, uid: string) => answers.lacks({ name: uid }, at(1, uid));

test('a list is compared with what was answered before it began, and with nothing else', () => {
  const answers = new Answers();
  answers.has(at(10));
  answers.listBegins();
  answers.has(at(20, 'later'));
  gone(answers, 'gone later');
  expect(answers.contradict(at(9))).toBe(true);
  expect(answers.contradict(at(10))).toBe(false);
  expect(answers.contradict(at(9, 'later'))).toBe(false);
  expect(answers.contradict(at(9, 'gone later'))).toBe(false);
  answers.listed();
  answers.listBegins();
  expect(answers.contradict(at(9))).toBe(false);
  expect(answers.contradict(at(9, 'later'))).toBe(true);
  expect(answers.contradict(at(9, 'gone later'))).toBe(true);
});

test('of several answers about one object the latest version counts, in whatever order they come', () => {
  const answers = new Answers();
  answers.has(at(11));
  answers.has(at(10));
  answers.listBegins();
  expect(answers.contradict(at(10))).toBe(true);
  expect(answers.latest('9')).toBe('11');
  expect(answers.latest('12')).toBe('12');
});

test('what the cache has shown is forgotten', () => {
  const answers = new Answers();
  answers.has(at(10));
  answers.has(at(12, 'v'));
  gone(answers, 'w');
  answers.shown('11', at(11, 'w'));
  answers.listBegins();
  expect(answers.contradict(at(9))).toBe(false);
  expect(answers.contradict(at(9, 'v'))).toBe(true);
  expect(answers.contradict(at(9, 'w'))).toBe(false);
});

test('it remembers a bounded number', () => {
  const answers = new Answers();
  for (let i = 0; i < 5_000; i++) {
    answers.has(at(100 + i, `had-${i}`));
    gone(answers, `gone-${i}`);
  }
  answers.listBegins();
  const known = Array.from({ length: 5_000 }, (_, i) => i);
  expect(known.filter((i) => answers.contradict(at(1, `had-${i}`)))).toHaveLength(4_096);
  expect(known.filter((i) => answers.contradict(at(1, `gone-${i}`)))).toHaveLength(4_096);
});

test('what is gone may be known by an earlier answer alone', () => {
  const answers = new Answers();
  answers.has(at(10));
  answers.lacks({ name: 'u' }, undefined);
  answers.listBegins();
  expect(answers.contradict(at(10))).toBe(true);
  expect(answers.latest('9')).toBe('10');
});
