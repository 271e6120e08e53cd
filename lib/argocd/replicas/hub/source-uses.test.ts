import { expect, test } from 'vitest';
import type { Application } from '../../application.ts';
import { routingUrl } from '../../routing.ts';
import { Memory } from '../testing.ts';
import { SourceUses } from './source-uses.ts';

const repoURL = 'https://git.example.com/shop';
const application = (name: string, server: string): Application => ({
  metadata: { name, namespace: 'argocd' },
  spec: { project: 'team', source: { repoURL }, destination: { server } },
});

test('what the Applications with a URL use goes where the URL goes', () => {
  const agents = new Map([['https://a', 'one']]);
  const applications = new Memory<Application>();
  const changed: string[] = [];
  const agentOf = (one: Application) => agents.get(routingUrl(one) ?? '');
  const uses = new SourceUses({ applications, agentOf, urlOf: routingUrl }, (agent, url) =>
    changed.push(`${agent} ${url}`),
  );
  const users = () => ['one', 'two'].filter((agent) => [...uses.of(agent)].length > 0);
  const means = (url: string, agent: string | undefined) => {
    const settle = uses.reroute(url);
    if (agent === undefined) {
      agents.delete(url);
    } else {
      agents.set(url, agent);
    }
    settle();
  };
  uses.follow();
  applications.put(application('first', 'https://a'));
  applications.put(application('second', 'https://a'));
  applications.put(application('third', 'https://b'));
  expect(users()).toEqual(['one']);
  means('https://a', 'two');
  expect([users(), changed.splice(0)]).toEqual([['two'], [`one ${repoURL}`, `two ${repoURL}`, `one ${repoURL}`]]);
  means('https://b', 'two');
  means('https://b', undefined);
  expect([users(), changed], 'another Application has the same use').toEqual([['two'], []]);
  applications.edit('first', { spec: { destination: { server: 'https://b' } } });
  applications.remove('second');
  expect(users()).toEqual([]);
  means('https://b', 'one');
  expect(users()).toEqual(['one']);
});
