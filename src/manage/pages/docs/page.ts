import {
  type Content,
  type DocumentedOperation,
  type DocumentedParameter,
  type OpenApiDocument,
  responseIn,
} from '../../api/openapi.ts'
import type { Schemas } from '../../http/json-schema.ts'
import { type Html, html, inline, paragraphs } from '../../http/front/html.ts'
import { aboutOf, schemaRows, typeOf } from './schema-rows.ts'

/** The paths that the page links to. */
export interface DocsPlaces {
  readonly page: string
  /** The OpenAPI document. */
  readonly file: string
  /** The page of the other version. */
  readonly other: { readonly page: string; readonly about: string }
}

/**
 * The OpenAPI document as a page for people, without scripts. It shows the operations that match `wanted`.
 */
export function docsPage(
  document: OpenApiDocument,
  { page, file, other }: DocsPlaces,
  wanted: string,
): string {
  const { info, tags, servers } = document
  const operations = operationsIn(document).filter((each) => isWanted(each, wanted))
  const sections = tags
    .map((tag) => ({ tag, members: operations.filter(({ operation }) => operation.tags.includes(tag.name)) }))
    .filter(({ members }) => members.length > 0)
  const links = sections.map(
    ({ tag, members }) =>
      html`<li>${tag.name}<ul>${members.map(({ operation }) => {
        return html`<li><a href="#${operation.operationId}">${operation.summary}</a></li>`
      })}</ul></li>`,
  )
  const body = html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${info.title} API</title>
<link rel="stylesheet" href="/docs/style.css">
<a class="skip" href="#operations">To the operations</a>
<header>
<h1>${info.title} API <small>${info.version}</small></h1>
${paragraphs(info.description)}
<p>At <code>${servers[0]?.url ?? ''}</code>; <a href="${file}">as OpenAPI 3.1</a>. Every request needs <code>Authorization: Bearer</code> with an API key or an access token. <a href="${other.page}">${other.about}</a>.</p>
<form role="search" action="${page}"><label for="q">Search operations</label> <input id="q" name="q" type="search" value="${wanted}" maxlength="100"> <button>Search</button> <a href="${page}">Show all</a></form>
</header>
<nav aria-label="Operations"><ul>${links}</ul></nav>
<main id="operations" tabindex="-1">${
    sections.length === 0
      ? html`<p role="status">No operation contains “${wanted}”.</p>`
      : sections.map(
          ({ tag, members }) =>
            html`<section><h2>${tag.name}</h2><p>${tag.description}</p>${members.map((each) => article(each, document))}</section>`,
        )
  }</main>
</html>
`
  return body.text
}

interface Placed {
  readonly method: string
  readonly path: string
  readonly operation: DocumentedOperation
}

function operationsIn({ paths }: OpenApiDocument): readonly Placed[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )
}

function isWanted({ method, path, operation }: Placed, wanted: string): boolean {
  const { summary, description, tags, operationId } = operation
  const text = [method, path, summary, description, operationId, ...tags].join(' ').toLowerCase()
  return wanted
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word))
}

function article({ method, path, operation }: Placed, document: OpenApiDocument): Html {
  const { schemas } = document.components
  const { operationId, summary, description, parameters = [], requestBody, responses } = operation
  const request = requestBody?.content['application/json']
  const good = Object.keys(responses).find((status) => status.startsWith('2')) ?? ''
  const answer = responseIn(document, operation, Number(good))?.content?.['application/json']
  return html`<article id="${operationId}" aria-labelledby="${operationId}-title">
<h3 id="${operationId}-title"><a href="#${operationId}">${summary}</a></h3>
<p class="call"><b class="${method.toLowerCase()}">${method}</b> <code>${path}</code></p>
${paragraphs(description)}
${parameters.length === 0 ? '' : parametersTable(parameters, schemas)}
${request === undefined ? '' : bodyTables('Body', request, schemas)}
${answer === undefined ? html`<h4>Answer ${good}</h4><p>Without a body.</p>` : bodyTables(`Answer ${good}`, answer, schemas)}
${problemsTable(operation, document)}
<h4>With curl</h4><pre tabindex="0"><code>${curlLine(method, path, operation, document)}</code></pre>
</article>`
}

function parametersTable(parameters: readonly DocumentedParameter[], schemas: Schemas): Html {
  const rows = parameters.map(
    ({ name, in: place, required, description, schema }) =>
      html`<tr><th scope="row"><code>${name}</code></th><td>${place}${required ? html`, <b>required</b>` : ''}</td><td>${typeOf(schema, schemas)}</td><td>${inline(aboutOf({ ...schema, description: description ?? schema.description ?? '' }))}</td></tr>`,
  )
  return html`<h4>Parameters</h4><div class="wide" tabindex="0"><table><tr><th scope="col">Name</th><th scope="col">In</th><th scope="col">Type</th><th scope="col">Meaning</th></tr>${rows}</table></div>`
}

function bodyTables(title: string, { schema, example }: Content, schemas: Schemas): Html {
  const rows = schemaRows(schema, schemas).map(
    ({ name, type, isRequired, about }) =>
      html`<tr><th scope="row"><code>${name}</code></th><td>${type}${isRequired ? '' : html` <i>optional</i>`}</td><td>${inline(about)}</td></tr>`,
  )
  const table = html`<details><summary>${rows.length} members</summary><div class="wide" tabindex="0"><table><tr><th scope="col">Name</th><th scope="col">Type</th><th scope="col">Meaning</th></tr>${rows}</table></div></details>`
  return html`<h4>${title}</h4>${rows.length === 0 ? '' : table}<pre tabindex="0"><code>${JSON.stringify(example, null, 2)}</code></pre>`
}

function problemsTable(operation: DocumentedOperation, document: OpenApiDocument): Html {
  const rows = Object.keys(operation.responses)
    .filter((status) => Number(status) >= 300)
    .map((status) => {
      const about = responseIn(document, operation, Number(status))?.description ?? ''
      return html`<tr><th scope="row">${status}</th><td>${inline(about)}</td></tr>`
    })
  return html`<details><summary>${rows.length} other answers</summary><table>${rows}</table></details>`
}

function curlLine(
  method: string,
  path: string,
  { parameters = [], requestBody }: DocumentedOperation,
  { servers }: OpenApiDocument,
): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const example = parameters.find((parameter) => parameter.name === name)?.example
    return encodeURIComponent(String(example ?? name))
  })
  const body = requestBody?.content['application/json']?.example
  return [
    `curl ${method === 'GET' ? '' : `-X ${method} `}${servers[0]?.url ?? ''}${filled}`,
    '-H "Authorization: Bearer $GATEHOUSE_KEY"',
    ...(body === undefined ? [] : [`--json '${JSON.stringify(body).replaceAll("'", "'\\''")}'`]),
  ].join(' \\\n  ')
}
