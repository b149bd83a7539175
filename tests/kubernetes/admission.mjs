// SPDX-License-Identifier: MIT
//
// tests/kubernetes/admission.mjs - what an API server makes of an object by the policies: selectors, match
// conditions, and mutations one after the other, where a failing one is skipped (failurePolicy: Ignore).
// Written after the description of the feature and the source of release 1.36; it is no API server.

import {createRequire} from 'node:module'
import {environment, evaluate} from './cel.mjs'

const {applyPatch} = createRequire(import.meta.url)('fast-json-patch')

// x-kubernetes-list-map-keys of the lists that are merged; other lists of a pod are replaced whole.
const keys = {containers: 'name', initContainers: 'name', env: 'name', volumes: 'name', volumeMounts: 'mountPath'}

function merge(old, patch, path) {
	for (const [name, value] of Object.entries(patch)) {
		const here = `${path}.${name}`
		if (Array.isArray(value)) {
			const key = keys[name]
			if (!key)
				throw new Error(`may not mutate atomic arrays, maps or structs: ${here}`)
			old[name] ??= []
			const had = new Set(old[name].map(one => one[key]))
			if (had.size < old[name].length)
				throw new Error(`duplicate entries for key: ${here}`)
			for (const one of value) {
				if (!had.has(one[key]))
					old[name].push({[key]: one[key]})
				merge(old[name].find(o => o[key] === one[key]), one, here)
			}
		} else if (value && typeof value === 'object') {
			merge(old[name] ??= {}, value, here)
		} else {
			old[name] = value
		}
	}
}

// A merge looks at all of the object, also where the patch has nothing.
function lists(value, path) {
	for (const [name, one] of Object.entries(value)) {
		if (Array.isArray(one) && keys[name] && new Set(one.map(o => o[keys[name]])).size < one.length)
			throw new Error(`duplicate entries for key: ${path}.${name}`)
		if (one && typeof one === 'object')
			lists(one, `${path}.${name}`)
	}
}

export function selected(selector, labels = {}) {
	return Object.entries(selector?.matchLabels ?? {}).every(([k, v]) => labels[k] === v) &&
		(selector?.matchExpressions ?? []).every(e => ({
			In: e.values?.includes(labels[e.key]), NotIn: !e.values?.includes(labels[e.key]),
			Exists: e.key in labels, DoesNotExist: !(e.key in labels)})[e.operator])
}

const expressionsOf = spec => [...spec.matchConditions ?? [], ...spec.variables ?? [],
	...(spec.mutations ?? []).map(m => m.jsonPatch ?? m.applyConfiguration),
	...spec.validations ?? []].map(one => one.expression)

function variablesOf(env, spec, object) {
	const variables = {}
	for (const {name, expression} of spec.variables ?? [])
		variables[name] = evaluate(env, expression, object, variables)
	return variables
}

// The object after the policy; errors are pushed onto failed.
export async function mutate(policy, root, object, failed) {
	const {spec} = policy
	const env = await environment(root, expressionsOf(spec))
	if (!selected(spec.matchConstraints.objectSelector, object.metadata.labels))
		return object
	try {
		if (!spec.matchConditions.every(c => evaluate(env, c.expression, object, {})))
			return object
	} catch (error) {
		failed.push(error)
		return object
	}
	for (const {patchType, jsonPatch, applyConfiguration} of spec.mutations) {
		const next = structuredClone(object)
		try {
			const variables = variablesOf(env, spec, object)
			if (patchType === 'JSONPatch') {
				applyPatch(next, evaluate(env, jsonPatch.expression, object, variables), true)
			} else {
				const patch = evaluate(env, applyConfiguration.expression, object, variables)
				lists(next, 'Object')
				merge(next, patch, 'Object')
			}
			object = next
		} catch (error) {
			failed.push(error)
		}
	}
	return object
}

// The messages of a ValidatingAdmissionPolicy.
export async function warnings(policy, object) {
	const {spec} = policy
	const env = await environment('V1Pod', [])
	if (!selected(spec.matchConstraints.objectSelector, object.metadata.labels))
		return []
	const variables = variablesOf(env, spec, object)
	return spec.validations.filter(v => !evaluate(env, v.expression, object, variables))
		.map(v => evaluate(env, v.messageExpression, object, variables))
}
