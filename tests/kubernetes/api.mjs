// SPDX-License-Identifier: MIT
//
// tests/kubernetes/api.mjs - the objects of the Kubernetes API, by the types that its project generates from
// the OpenAPI of a release (modules.sh): which fields an object has, of which type, and which it must have.
// What the API server checks beyond that (enumerations, patterns, names that refer to each other) is not known.

import {readFileSync} from 'node:fs'

const known = new Map()

// The fields of a type of the API, such as V1Pod: {name: {type, required}}.
export async function fields(type) {
	if (!known.has(type)) {
		const base = new URL(`api/${type}`, import.meta.url)
		const model = (await import(`${base}.js`))[type]
		const declared = readFileSync(new URL(`${base}.d.ts`), 'utf8')
		const required = new Set([...declared.matchAll(/^    '([^']+)':/gm)].map(m => m[1]))
		known.set(type, Object.fromEntries(model.attributeTypeMap.map(f =>
			[f.baseName, {type: f.type, required: required.has(f.name)}])))
	}
	return known.get(type)
}

// What a type is made of: {list: X}, {map: X}, {object: X}, {scalar: X}.
export function form(type) {
	let m
	if ((m = /^Array<(.*)>$/.exec(type)))
		return {list: m[1]}
	if ((m = /^\{ \[key: string\]: (.*); \}$/.exec(type)))
		return {map: m[1]}
	if (/^(Core|Events|Discovery|Admission\w*|Storage)?V[0-9]/.test(type))
		return {object: type}
	return {scalar: {Date: 'string', IntOrString: 'any', object: 'any'}[type] ?? type}
}

// Pushes onto wrong what value has that its type has not, and the other way round.
async function look(value, type, path, wrong) {
	const {list, map, object, scalar} = form(type)
	if (list) {
		if (!Array.isArray(value))
			wrong.push(`${path}: not a list`)
		else
			for (const [i, one] of value.entries())
				await look(one, list, `${path}[${i}]`, wrong)
	} else if (value === null || Array.isArray(value)) {
		wrong.push(`${path}: not of type ${type}`)
	} else if (scalar) {
		if (scalar !== 'any' && typeof value !== scalar)
			wrong.push(`${path}: not of type ${scalar}`)
	} else if (typeof value !== 'object') {
		wrong.push(`${path}: not an object`)
	} else if (map) {
		for (const [key, one] of Object.entries(value))
			await look(one, map, `${path}.${key}`, wrong)
	} else {
		const all = await fields(object)
		for (const [key, one] of Object.entries(value))
			if (all[key])
				await look(one, all[key].type, `${path}.${key}`, wrong)
			else
				wrong.push(`${path}.${key}: ${object} has no such field`)
		for (const [key, {required}] of Object.entries(all))
			if (required && !(key in value))
				wrong.push(`${path}.${key}: missing`)
	}
}

// What is wrong with a manifest; [] if nothing is.
export async function mistakes(manifest) {
	const version = manifest.apiVersion.split('/').at(-1)
	const wrong = []
	await look(manifest, version[0].toUpperCase() + version.slice(1) + manifest.kind, manifest.kind, wrong)
	return wrong
}
