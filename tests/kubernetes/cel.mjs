// SPDX-License-Identifier: MIT
//
// tests/kubernetes/cel.mjs - expressions of admission policies, evaluated by @bufbuild/cel with the names that
// an API server gives them: object, variables; the types Object, Object.spec... with the API's own fields; JSONPatch.

import {celEnv, CelScalar, mapType, isCelList, isCelMap, isCelError, parse, plan} from '@bufbuild/cel'
import {strings} from '@bufbuild/cel/ext'
import {create, createFileRegistry, toJson} from '@bufbuild/protobuf'
import {isReflectMessage} from '@bufbuild/protobuf/reflect'
import {FieldDescriptorProto_Label as Label, FieldDescriptorProto_Type as Type, FileDescriptorProtoSchema,
	FileDescriptorSetSchema, file_google_protobuf_struct} from '@bufbuild/protobuf/wkt'
import {fields, form} from './api.mjs'

const scalars = {string: Type.STRING, boolean: Type.BOOL, number: Type.INT32}
const anything = '.google.protobuf.Value'

// A field of a message: of the API's type, where it has a name in expressions.
function field(path, name, number, type, names, nested) {
	const {list, map, object, scalar} = form(type)
	const of = t => scalars[t] ? {type: scalars[t]} : {type: Type.MESSAGE,
		typeName: names.has(`${path}.${name}`) ? `.${path}.${name}` : anything}
	const common = {name, jsonName: name, number, label: list || map ? Label.REPEATED : Label.OPTIONAL}
	if (!map)
		return {...common, ...of(list ?? object ?? scalar)}
	const entry = name[0].toUpperCase() + name.slice(1) + 'Entry'
	nested.push({name: entry, options: {mapEntry: true}, field: [
		{name: 'key', jsonName: 'key', number: 1, label: Label.OPTIONAL, type: Type.STRING},
		{name: 'value', jsonName: 'value', number: 2, label: Label.OPTIONAL, ...of(map)}]})
	return {...common, type: Type.MESSAGE, typeName: `.${path}.${entry}`}
}

// A file with the message of this path, such as Object.spec.
function message(path, types, names) {
	const dot = path.lastIndexOf('.')
	const nestedType = []
	const field_ = Object.entries(types).map(([name, {type}], i) => field(path, name, i + 1, type, names, nestedType))
	return create(FileDescriptorProtoSchema, {
		name: `${path}.proto`, package: dot < 0 ? '' : path.slice(0, dot), syntax: 'proto2',
		dependency: ['google/protobuf/struct.proto', ...[...names].filter(n =>
			n.startsWith(`${path}.`) && !n.slice(path.length + 1).includes('.')).map(n => `${n}.proto`)],
		messageType: [{name: path.slice(dot + 1), field: field_, nestedType}]})
}

// The fields below the path of an Object that is of a type of the API.
async function resolve(root, path) {
	let type = root
	for (const name of path.split('.').slice(1)) {
		const found = (await fields(type))[name]
		if (!found)
			throw new Error(`${path}: no such field`)
		const {list, object} = form(found.type)
		type = form(list ?? object ?? '').object
		if (!type)
			throw new Error(`${path}: not an object`)
	}
	return fields(type)
}

// The environment for expressions about objects of a type, such as V1Pod.
export async function environment(root, expressions) {
	const names = new Set(['Object'])
	for (const [name] of expressions.join('\n').matchAll(/\bObject(\.\w+)*(?=\{)/g))
		names.add(name)
	const file = [file_google_protobuf_struct.proto]
	for (const name of [...names].sort((a, b) => b.split('.').length - a.split('.').length))
		file.push(message(name, await resolve(root, name), names))
	file.push(message('JSONPatch', {op: {type: 'string'}, from: {type: 'string'}, path: {type: 'string'},
		value: {type: 'any'}}, names))
	return celEnv({registry: createFileRegistry(create(FileDescriptorSetSchema, {file})), funcs: strings,
		variables: {object: CelScalar.DYN, variables: mapType(CelScalar.STRING, CelScalar.DYN)}})
}

function toCel(value) {
	if (Array.isArray(value))
		return value.map(toCel)
	if (value && typeof value === 'object')
		return new Map(Object.entries(value).map(([k, v]) => [k, toCel(v)]))
	return Number.isInteger(value) ? BigInt(value) : value
}

function fromCel(value) {
	if (isReflectMessage(value))
		return toJson(value.desc, value.message, {registry: undefined})
	if (isCelList(value))
		return [...value].map(fromCel)
	if (isCelMap(value))
		return Object.fromEntries([...value.entries()].map(([k, v]) => [k, fromCel(v)]))
	return typeof value === 'bigint' ? Number(value) : value
}

// The value of an expression, as JSON.  Throws where it fails: types are looked at when it is evaluated, not before.
export function evaluate(env, expression, object, variables) {
	const value = plan(env, parse(expression))({object: toCel(object), variables: toCel(variables)})
	if (isCelError(value))
		throw value
	return fromCel(value)
}
