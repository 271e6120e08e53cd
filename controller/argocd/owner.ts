import { wellKnown } from '../../lib/base/index.ts';
import type { ConfigMap } from '../../lib/kube/index.ts';
import { argoCdParamsName } from '../hub/index.ts';
import type { Workload } from './parameters.ts';
import { shellWord } from './shell.ts';

/** Who keeps Argo CD's parameters as they are and would put back what somebody else changes. */
export interface Owner {
  /** `Helm release argocd/argo-cd`, for messages. */
  readonly who: string;
  /** Whether it gives the parameters to the programs as flags, which come before the ConfigMap. */
  readonly givesFlags: boolean;
  /** What sets the values for good: a command or a field, as a clause. */
  readonly advice: (values: Readonly<Record<string, string>>) => string;
}

/** Names of Kubernetes objects and Helm releases. Anything else in an annotation is not repeated. */
const isName = (text: string | undefined): text is string => /^[a-z0-9][-a-z0-9._/]{0,252}$/.test(text ?? '');

/** The owner of Argo CD's parameters; undefined when it is a user with kubectl, or this controller. */
export function ownerOf(params: ConfigMap | undefined, server: Workload | undefined): Owner | undefined {
  for (const object of [params, server]) {
    const operated = object?.metadata.ownerReferences?.find(({ kind }) => kind === 'ArgoCD');
    if (operated) {
      return argoCdOperator(object?.metadata.namespace ?? '', operated.name);
    }
  }
  const { annotations = {}, labels = {} } = params?.metadata ?? {};
  const release = annotations['meta.helm.sh/release-name'];
  if (release !== undefined || labels[wellKnown.managedByLabel] === 'Helm') {
    return helmRelease(release, annotations['meta.helm.sh/release-namespace']);
  }
  const application =
    annotations['argocd.argoproj.io/tracking-id']?.split(':')[0]?.replace('_', '/') ??
    labels['app.kubernetes.io/instance'];
  if (application !== undefined) {
    return declared(`Argo CD's Application ${isName(application) ? application : '(unnamed)'}`);
  }
  const kustomization = labels['kustomize.toolkit.fluxcd.io/name'];
  return kustomization === undefined
    ? undefined
    : declared(`Flux's Kustomization ${isName(kustomization) ? kustomization : '(unnamed)'}`);
}

/** argocd-operator writes the whole ConfigMap, and gives the parameters to the programs as flags. */
function argoCdOperator(namespace: string, name: string): Owner {
  const fields: Readonly<Record<string, (value: string) => object>> = {
    'redis.server': (value) => ({ redis: { remote: value } }),
    'application.namespaces': (value) => ({ sourceNamespaces: value.split(',') }),
  };
  return {
    who: `ArgoCD ${namespace}/${name} of argocd-operator`,
    givesFlags: true,
    advice: (values) => {
      const given = Object.entries(values).filter(([key]) => fields[key] !== undefined);
      const spec = Object.assign({}, ...given.map(([key, value]) => fields[key]?.(value)));
      const caution =
        'redis.server' in values
          ? " (the operator then removes its own Redis: before, run one of your own and set the chart's value principal.redis.server.address to it)"
          : '';
      const patch = `set it in the ArgoCD${caution}: kubectl -n ${namespace} patch argocds.argoproj.io ${shellWord(name)} --type merge -p ${shellWord(JSON.stringify({ spec }))}`;
      const others = Object.entries(values).filter(([key]) => fields[key] === undefined);
      return [
        ...(given.length > 0 ? [patch] : []),
        ...others.map(
          ([key, value]) =>
            `set ${key} to ${JSON.stringify(value)} in the ArgoCD, whose spec.server has env and extraCommandArgs`,
        ),
      ].join('; ');
    },
  };
}

function helmRelease(release: string | undefined, namespace: string | undefined): Owner {
  const isKnown = isName(release) && isName(namespace);
  return {
    who: isKnown ? `Helm release ${namespace}/${release}` : 'a Helm release',
    givesFlags: false,
    advice: (values) => {
      const sets = Object.entries(values).map(
        ([key, value]) => `--set-string ${shellWord(`configs.params.${key.replaceAll('.', '\\.')}=${value}`)}`,
      );
      const target = isKnown ? `${release} argo/argo-cd --namespace ${namespace}` : 'argocd argo/argo-cd';
      return `set it in the release; with the chart argo-cd: helm upgrade ${target} --reuse-values ${sets.join(' ')}`;
    },
  };
}

const declared = (who: string): Owner => ({
  who,
  givesFlags: false,
  advice: (values) =>
    `set it in the source, in ConfigMap ${argoCdParamsName} or in the value configs.params of the chart argo-cd: ${JSON.stringify(values)}`,
});
