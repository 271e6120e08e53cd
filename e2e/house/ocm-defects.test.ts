import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { titlesIn } from './titles.ts';

/**
 * The defects of argocd-pull-integration that can cost an outage or data (H) or show wrong or incomplete behaviour (M), in
 * the order of its reference (8.1 controller, 8.2 add-on agent, 8.3 basic model), and for each the test that fails on the
 * defective behaviour. Kept here so that a test of a defect is not lost unnoticed: those named must exist.
 */
interface Defect {
  readonly severity: 'H' | 'M';
  /** What goes wrong in argocd-pull-integration, in a few words. */
  readonly what: string;
  /** File and title of each test. */
  readonly tests?: readonly (readonly [file: string, title: string])[];
  /** Why there is nothing here that could have the defect. */
  readonly absent?: string;
}

const leaving = 'controller/cluster/detach-steps.it.test.ts';
const detach = 'controller/cluster/detach.it.test.ts';
const comingBack = 'controller/cluster/reattach.it.test.ts';
const general = 'controller/tests/defects.it.test.ts';
const controller = 'controller/tests/controller.it.test.ts';
const rotation = 'controller/trust/rotation.it.test.ts';
const works = 'controller/render/works.test.ts';
const basic = 'controller/basic/basic.it.test.ts';
const back =
  'a cluster that comes back at any stage of leaving works again, and until then nothing says that it does (the controller %s)';
const handOver = 'a cluster goes over to a GitOpsCluster in %s without losing anything in between';

const ofController: readonly Defect[] = [
  {
    severity: 'H',
    what: 'a GitOpsCluster that is deleted leaves everything running',
    tests: [
      [leaving, 'deleting a GitOpsCluster takes everything along'],
      [detach, 'when the namespace of a GitOpsCluster is deleted its clusters are cleaned up first'],
      [detach, 'a fleet without its Placement goes when its GitOpsCluster does'],
    ],
  },
  {
    severity: 'H',
    what: 'a read that fails takes a cluster out, and its add-on is uninstalled',
    tests: [
      [general, '8.1 H: nobody leaves because %s cannot be read'],
      [leaving, 'nobody leaves because a Placement cannot be read'],
      [detach, 'a page of decisions that is missing is no reason to leave'],
    ],
  },
  {
    severity: 'H',
    what: 'two GitOpsClusters delete each other’s add-ons and turn certificates to and fro',
    tests: [
      [leaving, 'of two GitOpsClusters that select a cluster the older has it, and hands it over when it goes'],
      [detach, handOver],
      [controller, 'two GitOpsClusters of a namespace share authority and principal, and come to rest'],
    ],
  },
  {
    severity: 'H',
    what: 'the hub itself gets an add-on that overwrites, and later deletes, its Argo CD',
    tests: [[controller, 'the hub itself is never touched']],
  },
  {
    severity: 'H',
    what: 'a renewed authority locks agents out for up to 19 hours',
    tests: [
      [rotation, 'an operator asks for another authority: nothing changes over before all clusters trust it'],
      [rotation, 'an authority of ours is renewed after two thirds of its life'],
      ['principal/sessions/admission.it.test.ts', 'a new principal certificate is served without a restart'],
    ],
  },
  {
    severity: 'H',
    what: 'a reconcile takes 30 seconds for each cluster, one after the other',
    // Every wait of these tests is shorter than what two clusters take there.
    tests: [
      [controller, 'a GitOpsCluster enrolls the clusters of all decision pages'],
      [leaving, 'a cluster that does not answer holds nobody up and can be forced'],
    ],
  },
  {
    severity: 'M',
    what: 'what failed is not tried again, and what must be renewed waits for a chance',
    tests: [
      [general, '8.1 M: what failed is tried again by itself, and the status says so until it works'],
      [rotation, 'an authority of ours is renewed after two thirds of its life'],
      [rotation, 'what becomes due while the controller works is renewed by itself'],
    ],
  },
  {
    severity: 'M',
    what: 'what was deleted or edited is not repaired, a cluster that comes back is lost',
    tests: [
      [controller, 'what someone deletes or changes is repaired'],
      [detach, 'an add-on that somebody deletes is made again, and the cluster does not notice'],
      [comingBack, back],
    ],
  },
  {
    severity: 'M',
    what: 'discovery writes into the specification and never looks again',
    tests: [
      [general, '8.1 M: the discovered address stands in no specification, and follows the Service'],
      ['controller/endpoint/discovery.test.ts', 'what the user wrote is used as it is'],
      [
        'controller/endpoint/discovery.test.ts',
        'a load balancer: host name before IP address, the serving port, what the user wrote of the two',
      ],
    ],
  },
  {
    severity: 'M',
    what: 'the cluster Secret does not lead to the resource proxy',
    tests: [
      ['e2e/suites/enrolment.e2e.test.ts', "the hub's Argo CD knows each cluster, through the resource proxy"],
      [controller, 'a GitOpsCluster enrolls the clusters of all decision pages'],
      [
        'controller/endpoint/discovery.test.ts',
        'certificates name every way to the principal and the resource proxy, each once',
      ],
    ],
  },
  {
    severity: 'M',
    what: 'a custom payload that is wrong stops clean-up and add-ons',
    tests: [
      [
        'controller/cluster/cluster-works.it.test.ts',
        "a user's ArgoCD that cannot work is said with the place of the mistake, and nothing else stops",
      ],
    ],
  },
  {
    severity: 'M',
    what: 'settings and namespaces that change arrive halfway',
    tests: [
      [general, '8.1 M: a namespace of the agents that changes, changes everywhere'],
      [controller, 'an AddOnDeploymentConfig that an add-on names is applied and reported'],
    ],
  },
  {
    severity: 'M',
    what: 'the template of an add-on is added to the former one, not put in its place',
    absent: 'no AddOnTemplate: the controller renders the works itself',
  },
  {
    severity: 'M',
    what: 'the principal is restarted at the edge, and not for every certificate',
    tests: [
      ['principal/sessions/admission.it.test.ts', 'a new principal certificate is served without a restart'],
      [
        'lib/wire/client/certificate-watch.test.ts',
        'a renewed certificate is taken up near the end of the one in use, not before',
      ],
    ],
  },
  {
    severity: 'M',
    what: 'the status says nothing of the clusters, and goes stale',
    tests: [
      [controller, 'the health of a cluster comes from its works and its connection'],
      [
        'controller/fleet/fleet-steps.test.ts',
        'of many failing clusters the ten are listed that have been failing for longest, in the same order every time',
      ],
      [comingBack, back],
    ],
  },
  {
    severity: 'M',
    what: 'the chart does not grant what Placements need',
    tests: [
      [general, '8.1 M: tolerations are added to a Placement that lacks them, beside those that it has'],
      ['e2e/hub/rights.it.test.ts', 'are enough for controller and principal to enroll a cluster and to let it go'],
    ],
  },
];

const ofAddOnAgent: readonly Defect[] = [
  {
    severity: 'H',
    what: 'a marker of the clean-up stays, and a cluster that comes back is dead for ever',
    tests: [
      [
        general,
        '8.2 H: nothing that a departure leaves behind keeps the agent of a cluster that comes back from working',
      ],
      [comingBack, back],
    ],
  },
  {
    severity: 'H',
    what: 'the clean-up takes the work agent its rights while there is work left for it',
    tests: [
      [leaving, 'a cluster that leaves is cleaned up in order, and can come back'],
      [detach, 'a ManagedCluster that is deleted is cleaned up in order, while OCM waits for its add-on'],
      [
        'controller/render/operator.test.ts',
        'operator, then ArgoCD and credentials; namespaces and CRDs stay when they go',
      ],
    ],
  },
  {
    severity: 'M',
    what: 'agent and clean-up are cluster-admin',
    tests: [
      [works, 'may not do more than it needs'],
      [
        'controller/render/cleanup.test.ts',
        'the clean-up may not do more than it needs: nothing to make, and to change only what it removes',
      ],
    ],
  },
  {
    severity: 'M',
    what: 'CRDs are never upgraded, and some may be missing',
    tests: [
      [general, '8.2 M: a CRD that the hub upgrades is upgraded on the clusters'],
      [works, 'are brought up to date on the clusters, not only made'],
      [
        'controller/cluster/cluster-works.it.test.ts',
        'argocd-operator needs its CRDs on the hub; with them it is delivered with an ArgoCD for it',
      ],
    ],
  },
  {
    severity: 'M',
    what: 'an image named by its digest cannot be pulled',
    tests: [['controller/render/digest.test.ts', '8.2 M: images named by their digest are delivered as they are']],
  },
  {
    severity: 'M',
    what: 'all objects are replaced each minute, with what others noted on them',
    tests: [
      [controller, 'a second look writes nothing, nor does a restart'],
      [general, '8.2 M: what others note on what the controller made stays, and leads to no write'],
    ],
  },
  {
    severity: 'M',
    what: 'the clean-up deletes by one label everywhere, and leaves namespaces behind',
    tests: [
      [
        'controller/commands/clean-up.it.test.ts',
        'copies go without what they deployed, everywhere, and then the namespace',
      ],
      ['controller/commands/clean-up.it.test.ts', 'a namespace that was there before stays'],
      ['controller/tests/remains.it.test.ts', 'hub and cluster are after leaving what they were before enrolment'],
    ],
  },
  {
    severity: 'M',
    what: 'the agent goes on with the former authority',
    tests: [
      [rotation, 'an operator asks for another authority: nothing changes over before all clusters trust it'],
      [
        'lib/wire/client/certificate-watch.test.ts',
        'a renewed certificate is taken up near the end of the one in use, not before',
      ],
    ],
  },
  {
    severity: 'M',
    what: 'what cannot be applied stands in a log, as a success',
    tests: [
      ['controller/cluster/cluster-health.test.ts', 'what the cluster refuses is named'],
      ['controller/cluster/cluster-health.test.ts', 'available when every workload has a ready pod'],
    ],
  },
];

const ofBasicModel: readonly Defect[] = [
  {
    severity: 'H',
    what: 'an operation is lost on its way',
    tests: [
      [basic, '8.3 H: an operation runs once, and the hub’s Application keeps its destination'],
      [
        basic,
        '8.3 H: a controller that dies after every write leaves no operation undone, none done twice, and no work',
      ],
      ['controller/basic/requests.test.ts', 'run once each, in order, whatever is late, missed or killed'],
    ],
  },
  {
    severity: 'H',
    what: 'the destination of the hub’s Application is rewritten',
    tests: [[basic, '8.3 H: an operation runs once, and the hub’s Application keeps its destination']],
  },
  {
    severity: 'M',
    what: 'the hub’s Application goes before that of the cluster',
    tests: [
      [basic, '8.3 M: an Application that is deleted stays until its copy and what it deployed are gone'],
      [basic, 'the last word on the finalizer counts, also when the cluster hears only the end of it'],
    ],
  },
  {
    severity: 'M',
    what: 'another cluster, or no label any more, leaves the former work',
    tests: [
      [basic, '8.3 M: no work is left when an Application loses its label or moves to another cluster, also unseen'],
    ],
  },
  {
    severity: 'M',
    what: 'short UIDs and odd feedback end the program',
    tests: [
      [
        'controller/basic/work.test.ts',
        'has a name that the work agent can take, however long that of the Application is, and whatever its UID',
      ],
      ['controller/basic/status.test.ts', 'is read by name and type; anything else counts as not told'],
    ],
  },
  {
    severity: 'M',
    what: 'health flaps, operations are invented, messages are missing',
    tests: [
      [
        'controller/basic/status.test.ts',
        '8.3 M: goes from Healthy to Healthy without a detour, and an unchanged report changes nothing',
      ],
      ['controller/basic/status.test.ts', '8.3 M: has no operationState that nobody told'],
      [
        'controller/basic/status.test.ts',
        'is what the cluster tells, with messages, revision, last deployment and first condition',
      ],
    ],
  },
  {
    severity: 'M',
    what: 'names become too long, and two Applications become one',
    tests: [
      [basic, '8.3 M: two Applications that want one place: the first has it, the other is told, and follows'],
      [
        'controller/basic/work.test.ts',
        'has a name that the work agent can take, however long that of the Application is, and whatever its UID',
      ],
    ],
  },
];

const sections = [
  ['8.1', ofController],
  ['8.2', ofAddOnAgent],
  ['8.3', ofBasicModel],
] as const;
const reference = join(import.meta.dirname, '../../../shared/reference/ocm.md');

describe.each(sections)('section %s', (section, defects) => {
  test('every defect has a test, or a reason why there can be none', () => {
    for (const { what, tests = [], absent } of defects) {
      expect(tests.length > 0 || absent !== undefined, what).toBe(true);
    }
  });

  // The list itself is not part of the project; where it is at hand, none of its lines is left out.
  test.skipIf(!existsSync(reference))('no defect of the reference is left out', () => {
    const text = readFileSync(reference, 'utf8').split(`\n### ${section} `)[1]?.split('\n### ')[0] ?? '';
    const severities = Array.from(text.matchAll(/^\| ([HM]) \|/gm), ([, severity]) => severity);
    expect(defects.map(({ severity }) => severity)).toEqual(severities);
  });

  test.each(defects.flatMap(({ what, tests = [] }) => tests.map((one) => [what, ...one] as const)))(
    'the test of "%s" exists: %s, %s',
    (_, file, title) => {
      expect(titlesIn(file)).toContain(title);
    },
  );
});
