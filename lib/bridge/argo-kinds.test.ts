import { expect, test } from 'vitest';
import { argoApplications, argoAppProjects, keptOutSelector, syncSelector } from './index.ts';

test("the resources have the plural names of Argo CD's API", () => {
  expect(argoApplications).toMatchObject({ group: 'argoproj.io', version: 'v1alpha1', plural: 'applications' });
  expect(argoAppProjects).toMatchObject({ group: 'argoproj.io', version: 'v1alpha1', plural: 'appprojects' });
});

test("the selector leaves out what must not be synchronised and adds the user's own", () => {
  expect(syncSelector('')).toBe('argocd-agent.argoproj-labs.io/ignore-sync!=true');
  expect(syncSelector('team=a')).toBe('argocd-agent.argoproj-labs.io/ignore-sync!=true,team=a');
});

test('another selector finds what the label alone leaves out', () => {
  expect(keptOutSelector('')).toBe('argocd-agent.argoproj-labs.io/ignore-sync=true');
  expect(keptOutSelector('team=a')).toBe('argocd-agent.argoproj-labs.io/ignore-sync=true,team=a');
});
