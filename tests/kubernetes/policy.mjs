// SPDX-License-Identifier: MIT
//
// tests/kubernetes/policy.mjs MANIFESTS CASES BY-HAND - prints PASS and FAIL lines: are the manifests of the API's
// types, and do the policies make of each pod of cases.yaml what was meant, once and again?  All three are JSON;
// the first is a list of what "fiberize kubernetes" prints with several options.

import {isDeepStrictEqual} from 'node:util'
import {readFileSync} from 'node:fs'
import {mistakes} from './api.mjs'
import {mutate, warnings} from './admission.mjs'

const [manifests, {cases}, byHand] = process.argv.slice(2).map(name => JSON.parse(readFileSync(name, 'utf8')))
const of = kind => manifests[0].find(one => one.kind === kind)
const changes = of('MutatingAdmissionPolicy')
const warning = of('ValidatingAdmissionPolicy')

function same(name, wanted, got) {
	console.log(isDeepStrictEqual(wanted, got) ? `PASS ${name}` :
		`FAIL ${name}: wanted ${JSON.stringify(wanted)}, got ${JSON.stringify(got)}`)
}

// ---- types

for (const [i, all] of manifests.entries())
	for (const one of all)
		same(`types: ${i}: ${one.kind} ${one.apiVersion}`, [], await mistakes(one))
const wrong = structuredClone(changes)
wrong.spec.mutation = []
delete wrong.spec.mutations[0].patchType
wrong.spec.failurePolicy = 1
same('types: mistakes are found', [
	'MutatingAdmissionPolicy.spec.failurePolicy: not of type string',
	'MutatingAdmissionPolicy.spec.mutation: V1MutatingAdmissionPolicySpec has no such field',
	'MutatingAdmissionPolicy.spec.mutations[0].patchType: missing'], (await mistakes(wrong)).sort())

// ---- pods

const pod = one => ({apiVersion: 'v1', kind: 'Pod', ...structuredClone(one)})

for (const {name, pod: given, wanted, same: untouched, warns} of cases) {
	const before = pod(given)
	const failed = []
	same(`${name}: a pod`, [], await mistakes(before))
	const after = await mutate(changes, 'V1Pod', structuredClone(before), failed)
	same(name, untouched ? before : pod(wanted), after)
	same(`${name}: no expression fails`, [], failed.map(String))
	same(`${name}: a pod afterwards`, [], await mistakes(after))
	same(`${name}: again`, after, await mutate(changes, 'V1Pod', structuredClone(after), failed))
	const said = await warnings(warning, before)
	same(`${name}: warnings`, warns ? 1 : 0, said.length)
	if (warns)
		same(`${name}: the warning`, true, said[0].includes(warns))
	// What a Deployment and a CronJob are warned of is what their pods are.
	const template = {metadata: given.metadata, spec: given.spec}
	if (!given.metadata.labels)
		for (const owner of [{kind: 'Deployment', metadata: {}, spec: {template}},
			{kind: 'CronJob', metadata: {}, spec: {jobTemplate: {spec: {template}}}}])
			same(`${name}: warnings for a ${owner.kind}`, said, await warnings(warning, owner))
}

// ---- other clusters, failures

const mixed = manifests[1].find(one => one.kind === 'MutatingAdmissionPolicy')
for (const [arch, changed] of [[undefined, false], ['amd64', true], ['arm64', true], ['s390x', false]]) {
	const before = pod({metadata: {}, spec: {containers: [{name: 's', image: 'i'}],
		...arch && {nodeSelector: {'kubernetes.io/arch': arch}}}})
	const after = await mutate(mixed, 'V1Pod', structuredClone(before), [])
	same(`mixed: nodes of ${arch}`, changed, !isDeepStrictEqual(before, after))
}
// One architecture of the image is enough.
for (const [values, changed] of [[['arm64'], true], [['amd64', 's390x'], true], [['amd64', 'arm64'], false]]) {
	const before = pod({metadata: {}, spec: {containers: [{name: 's', image: 'i'}],
		nodeSelector: {'kubernetes.io/arch': 'amd64'},
		affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [
			{matchExpressions: [{key: 'kubernetes.io/arch', operator: 'NotIn', values}]}]}}}}})
	const after = await mutate(mixed, 'V1Pod', structuredClone(before), [])
	same(`an image for two architectures: nodes that are not of ${values}`, changed, !isDeepStrictEqual(before, after))
}
// Whichever of the mutations fails, the pod is one that can start.
for (const i of changes.spec.mutations.keys()) {
	const broken = structuredClone(changes)
	const {jsonPatch, applyConfiguration} = broken.spec.mutations[i]
	;(jsonPatch ?? applyConfiguration).expression = 'object.nonesuch'
	const failed = []
	const after = await mutate(broken, 'V1Pod', pod({metadata: {}, spec: {containers: [{name: 's', image: 'i'}]}}), failed)
	const volumes = new Set((after.spec.volumes ?? []).map(v => v.name))
	const mounts = [...after.spec.containers, ...after.spec.initContainers ?? []].flatMap(c => c.volumeMounts ?? [])
	same(`mutation ${i} fails: it is skipped`, 1, failed.length)
	same(`mutation ${i} fails: each mount has its volume`, [], mounts.filter(m => !volumes.has(m.name)))
}

// ---- the two patches by hand make what the policy makes

const template = byHand.spec.template
const natural = pod({metadata: {labels: {app: 'server'}}, spec: {containers: [
	{name: 'server', image: 'x', env: [{name: 'A', value: 'b'}]}, {name: 'beside', image: 'y', env: [
		{name: 'LD_PRELOAD', valueFrom: {fieldRef: {fieldPath: 'metadata.name'}}}]}]}})
const mutated = await mutate(changes, 'V1Pod', natural, [])
// In another order, and without the field that is empty.
const sorted = spec => ({...spec, initContainers: spec.initContainers.map(({resources, ...c}) => c),
	containers: spec.containers.map(c => c.name === 'server' ? {...c,
		env: [...c.env].sort((a, b) => a.name < b.name ? -1 : 1)} : c),
	volumes: [...spec.volumes].sort((a, b) => a.name < b.name ? -1 : 1)})
same('by hand: as the policy', sorted(mutated.spec), sorted(template.spec))
same('by hand: the label', mutated.metadata.labels, template.metadata.labels)
same('by hand: a Deployment', [], (await mistakes(byHand)).filter(m => !m.endsWith('selector: missing')))
const found = pod({metadata: template.metadata, spec: template.spec})
same('by hand, and then the policy: nothing is done twice', template.spec.initContainers,
	(await mutate(changes, 'V1Pod', structuredClone(found), [])).spec.initContainers)
