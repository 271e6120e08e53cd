import { expect, test } from 'vitest';
import type { AppProject } from '../../application.ts';
import { ProjectDecisions } from './project-decisions.ts';

const project = (name: string): AppProject => ({ metadata: { name }, spec: {} });

test('each project is decided once for each agent, until its clusters change', () => {
  const decided: string[] = [];
  const decisions = new ProjectDecisions(({ metadata }, agent) => decided.push(`${metadata.name} ${agent}`) > 0);
  const [a, b] = [project('a'), project('b')];
  const ask = () => {
    for (const agent of ['one', 'two']) {
      expect([a, b, a].map((each) => decisions.of(each, agent))).toEqual([true, true, true]);
    }
    return decided.splice(0);
  };
  expect(ask()).toEqual(['a one', 'b one', 'a two', 'b two']);
  expect(ask()).toEqual([]);
  decisions.forget('one');
  expect(ask()).toEqual(['a one', 'b one']);
  decisions.forget();
  expect(ask()).toHaveLength(4);
  decisions.of(project('a'), 'one');
  expect(decided, 'a changed project is another object').toEqual(['a one']);
});
