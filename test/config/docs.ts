import { writeFileSync } from 'node:fs'
import { isSecret, variableOf } from '../../src/config/layers.ts'
import type { Item, Items } from '../../src/config/items.ts'
import { FLAGS } from '../../src/config/layers.ts'
import { SETTINGS } from '../../src/config/schema.ts'
import { CONDITIONS } from '../../src/policy/condition.ts'
import { REQUEST_STEPS_MAX } from '../../src/policy/request.ts'

/** config/README.md, made from the schema: `npm run config:docs` writes it, and a test holds it against this. */
export function readme(): string {
  const rules = [...CONDITIONS].map(([name, { takes, about }]) => row([`\`${name}\``, takes, about]))
  const conditions = [row(['condition', 'takes', 'asks']), row(['---', '---', '---']), ...rules].join('\n')
  return `${INTRODUCTION}\n${sectionText(SETTINGS.members, '')}\n${POLICY.replace('CONDITIONS', conditions)}`
}

/** A table of the values of a section, then what is under it. */
function sectionText(members: Items, pointer: string): string {
  const rows: string[] = []
  const below: string[] = []
  for (const [name, item] of Object.entries(members)) {
    const at = `${pointer}/${name}`
    if (item.item === 'section') below.push(heading(at, item.about), sectionText(item.members, at))
    else rows.push(settingRow(name, item, at))
    if (item.item === 'sections')
      below.push(heading(`${at}[]`, item.about), sectionText(item.section.members, `${at}[]`))
  }
  const head = [row(['setting', 'takes', 'default', 'meaning']), row(['---', '---', '---', '---'])]
  const table = rows.length === 0 ? '' : `${[...head, ...rows].join('\n')}\n`
  return [table, ...below].filter((part) => part !== '').join('\n')
}

function heading(pointer: string, about: string): string {
  return `## ${pointer.slice(1).replaceAll('/', '.')}\n${about === '' ? '' : `\n${about}\n`}`
}

function settingRow(name: string, item: Exclude<Item, { item: 'section' }>, pointer: string): string {
  const flag = Object.entries(FLAGS).find(([, at]) => at === pointer)?.[0]
  const special = pointer.includes('[]') ? '' : variableText(pointer)
  const notes = [item.about, flag === undefined ? '' : `\`--${flag}\`.`, special]
  const names = isSecret(item) ? `\`${name}\`, \`${name}_file\`` : `\`${name}\``
  return row([names, takesOf(item), defaultOf(item), notes.filter((note) => note !== '').join(' ')])
}

/** Only where it does not follow from the name. */
function variableText(pointer: string): string {
  const usual = `GATEHOUSE_${pointer.slice(1).replaceAll('/', '_').toUpperCase()}`
  return variableOf(pointer) === usual ? '' : `Variable: \`${variableOf(pointer)}\`.`
}

function takesOf(item: Item): string {
  switch (item.item) {
    case 'setting':
      return item.kind.takes
    case 'list':
      return `list: ${item.kind.takes}`
    case 'sections':
      return 'list: see below'
    case 'secret':
      return item.lengthMin === 0 ? 'secret' : `secret, ${item.lengthMin} characters or more`
    case 'secrets':
      return `list: secret, ${item.lengthMin} characters or more`
    case 'short':
      return takesOf(item.of)
    case 'section':
      return ''
  }
}

function defaultOf(item: Item): string {
  if (item.item === 'list' && item.fallback.length > 0)
    return item.fallback.map((each) => `\`${each}\``).join(', ')
  if (item.item === 'list' || item.item === 'sections') return 'none'
  if (item.item !== 'setting') return 'none'
  if (item.fallback === undefined) return 'required'
  return item.fallback === null ? '`null`' : `\`${item.fallback}\``
}

function row(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
}

const INTRODUCTION = `# Settings

Made from the program by \`npm run config:docs\`; not to be edited by hand. \`example.yaml\` shows most of it,
\`all-in-one.yaml\`, \`fleet.yaml\` and \`sidecar.yaml\` are where to start. Policies are at the end of this page.

A setting comes from a flag, else from its variable, else from the file that \`--config\` or \`GATEHOUSE_CONFIG\` names,
else it has its default. \`gatehouse check\` takes the same and shows what is in force, and who said so.

- **Variables**: \`proxy.limits.hello_timeout\` is \`GATEHOUSE_PROXY_LIMITS_HELLO_TIMEOUT\`. Lists are separated by
  commas; a list of sections is YAML or JSON. An empty variable is none. A variable that starts with \`GATEHOUSE_\` and is
  no setting is an error, but for those that Kubernetes makes for a service called \`gatehouse\`.
- **Times** have a unit (\`500ms\`, \`10s\`, \`2m\`, \`1h\`, \`7d\`), **sizes** too (\`64KiB\`, \`1MiB\`).
- **Paths** in a file are relative to that file's folder; those of flags and variables to where the program runs.
- **Secrets** are never shown. Each may be in a file of its own instead: \`admin_key_file\`, \`GATEHOUSE_ADMIN_KEY_FILE\`.
- An unknown setting is an error. So is a setting that is given twice in one place, as by \`upstream\` and \`upstreams\`.
`

const POLICY = `# The policy

\`policy.file\` names it: YAML or JSON, loaded anew when it changes. The first rule that holds decides; \`otherwise\` does
where none holds, and is \`tag\` unless it says something else.

\`\`\`yaml
rules:
  - name: feeds are for everybody       # letters, digits, blanks and . _ - : / ; each once
    when: {path: [/feed.xml, /.well-known/*]}
    action: pass
  - name: crawlers stay out of search
    when: {category: crawler, path: /search*, not: {verified: true}}
    action: {block: {status: 403}}
    dry_run: true                       # says what it would have done, and the next rule is tried
    expires: 2027-01-31T00:00:00Z       # holds no more from then on
otherwise: tag
unknown_signer: pass                    # or {wait: 300ms}, at most 5s
\`\`\`

\`unknown_signer\` is for requests that are signed (Web Bot Auth) by somebody whose key is not known yet: \`pass\`, which is
the default, judges them at once, as \`signature-unchecked\`; with \`wait\` they wait for the key for so long, and are judged
then. Those that are not signed never wait.

Ready-made ones, each with what it does and whom it hurts:

| file | does |
| --- | --- |
| \`observe.yaml\` | tags everything, blocks nothing |
| \`block-unverified-crawlers.yaml\` | turns away crawlers that cannot prove who they are |
| \`block-spoofed-browsers.yaml\` | turns away programs that dress up as a browser |
| \`block-impostors.yaml\` | turns away who passes himself off as an agent: signatures that do not hold, agents from elsewhere |
| \`allow-verified-only.yaml\` | of all programs, lets in those that can prove who they are |
| \`policy.yaml\` | an example of many kinds of rules |

## when

All that is under \`when\` must be so; \`when: {}\` always is. Each takes one value or a list, of which one has to fit. In
patterns \`*\` stands for any run of characters.

CONDITIONS

**Agents and software** are named by id (\`openai-sdk-python\`), by name or by an alias (\`openai-python\`), in any
spelling; \`gatehouse signatures list\` has them. A name that several have stands for the first of them. It is settled when the
policy or the signatures change. A feed may bring an unknown name later, so it is a warning in \`gatehouse
check\`, in the answers of \`PUT /v1/policy\` and \`/v1/policy/preview\` (\`warnings\`) and in the dashboard. \`check\` knows no
agents that the API has made. Words of a list (verdict, category, evidence, verified, hello, actions) are errors where the list
does not have them. The same goes for what an expression compares with \`verdict.agent\`, \`.software\`, \`.kind\`,
\`.category\`, \`.proof_method\` and \`.evidence\`.

**Hosts** are compared without port, final dot and case, IPv6 addresses (\`[2001:db8::1]\`) in any spelling; other letters are
written as requests have them (\`xn--bcher-kva.example\`). \`*.example.test\` is every host below \`example.test\`, and not
\`example.test\` itself. A rule is about the host that the client asks for. Under any other name a client reaches the same
app, and a rule with \`host\` does not hold: list the hosts that are served in \`proxy.hosts\`, and others are refused before
any rule is tried. With \`proxy.unknown_host: pass\` others are passed on and counted, and only rules without \`host\`, or with
\`not: {host: […]}\`, hold for them. Where an upstream has \`host: upstream\`, its app sees its own host, and rules still judge the
client's. A request of HTTP/1.0 without a Host gets the name in the TLS hello or, without one, the host of the first URL of
the first upstream: rules judge it, and the app sees it. \`check --explain\` knows the policy alone, not what \`proxy.hosts\` and
\`proxy.tls\` refuse.

**Paths** have upper and lower case. \`/admin\` is that path alone, \`/admin/*\` all below it, \`/admin*\` both, and
\`/administrator\` too. A path is compared decoded (\`%61dmin\` is \`admin\`). One that different servers read differently
(\`//admin\`, \`/x/../admin\`, \`/a%2fadmin\`, \`/admin;v=1\`) is compared as it was sent and in its plainest form: a rule
that keeps somebody from something (block, rate_limit, tarpit, redirect) holds if either fits, one that lets through
(pass, tag, route) only if both do.

**Headers** are those the client sent, believed or not. Ours cannot be asked for: \`forged\` tells who sent one.

**Expressions** say what the other conditions cannot, in [CEL](https://cel.dev). \`when: 'TEXT'\` is short for
\`when: {expression: 'TEXT'}\`.

\`\`\`yaml
- name: posts from elsewhere
  when: 'request.method == "POST" && has(request.headers.origin) && request.headers.origin != "https://" + request.host'
  action: block
\`\`\`

| name | is |
| --- | --- |
| \`request.method\`, \`.host\`, \`.path\`, \`.query\` | texts; host and path as the conditions of that name compare them, the query without its \`?\` |
| \`request.headers\` | by name in lower case; several of one name are joined, with \`; \` for cookies and \`, \` for others; none of ours |
| \`client.address\` | the client's address |
| \`verdict.kind\`, \`.agent\`, \`.category\`, \`.software\` | texts, ids of agent and software |
| \`verdict.confidence\`, \`.verified\`, \`.evidence\` | a number from 0 to 1, true or false, a list of kinds |
| \`verdict.proof_method\`, \`.signer\` | texts: how it is verified, and with \`web-bot-auth\` the URL of who has signed |
| \`fingerprint.ja4\`, \`.ja4h\`, \`.stable\`, \`.http2\` | texts |
| \`forged\` | true or false |

What is not there is an empty text, a header too: \`"x-key" in request.headers\` and \`has(request.headers.accept)\` tell
whether it was sent. There are the operators of CEL, \`size\`, \`startsWith\`, \`endsWith\`, \`contains\`, \`indexOf\`,
\`lastIndexOf\`, \`substring\`, \`trim\`, \`lowerAscii\`, \`upperAscii\`, \`int\`, \`double\`, \`string\`, and \`exists\`,
\`exists_one\` and \`all\` over \`verdict.evidence\` or a list that is written out, not one in another. \`matches\` is left
out, as a regular expression can take for ever on what a client sends. All is checked when the policy is loaded: names,
types, at most 2048 characters and 1000 steps.

What has no answer (\`int("x")\`, a division by 0, the tenth of nine) is taken as a path of two forms is: a rule that keeps
somebody from something holds if it could, one that lets through does not. \`policy_expression_failures_total\` counts it;
as everywhere in CEL, \`A || B\` and \`A && B\` have an answer where one side alone decides. All expressions that are tried
for one request take ${REQUEST_STEPS_MAX} steps at most; those behind have no answer, and \`policy_expression_overruns_total\` counts
the request. \`check\` and the API say of a policy that this may happen to it.

**Why**: \`gatehouse check --policy policy.yaml --explain request.json\` says which rules hold for a request, which
condition of the others does not, and what comes of it. The file is JSON or YAML, and everything in it is optional:

\`\`\`yaml
method: GET
host: shop.example.test
path: /api/items?id=1
address: 192.0.2.7
http: 2                                           # or 1.1; without, 2 where ja4 or http2 say so
headers: {User-Agent: GPTBot/1.2, Accept: '*/*'}  # or a list of [name, value]; a value may be a list
ja4: t13d1516h2_8daaf6152771_e5627efa2ab1         # likewise ja4h, stable, http2, and hello: not-tls
verdict:                                          # the classification of the client; left out, it is made of the rest
  kind: agent
  agent: {id: gptbot, name: GPTBot, category: crawler}
  software: {id: gptbot, name: GPTBot, kind: agent}
  confidence: 0.9
  verified: ip-range                              # or reverse-dns, web-bot-auth; left out where it is not
  # signer: https://agent.example                # who has signed, with web-bot-auth
  evidence: [declares-bot]
\`\`\`

Without \`verdict\` the request is judged as the first of a connection, and each piece of evidence is said with its weight. It
takes what the client sends: all headers in their order, and ja4, stable and http2, which X-JA4-Fingerprint and Sightings
have. The traits of a hello that neither of them shows are not looked at. Signatures are those of the configuration. The
dashboard's page Policy says the same of what is pasted there, or was recorded, and \`POST /v1/policy/explain\` of the same JSON.

**What if**: with \`sightings.file\`, what comes is recorded. \`gatehouse check --policy new.yaml --replay sightings.jsonl\`
says what the new policy would change of what was done; \`--against old.yaml\` compares with another policy instead. Actions
before and after, the agents and paths that change most, and how often each rule decides. Sightings keep no headers but
User-Agent, and no query: where a rule asks for these, and all else in it holds, the request counts as one that cannot be
judged, and the rule is named. Verdicts are those of the time; whether a limit would be reached is not replayed.

## action

| action | does |
| --- | --- |
| \`pass\` | forwards untagged: of our headers the app gets X-Forwarded-* and Forwarded only, and none from the client |
| \`tag\` | forwards with all that is known; \`{tag: {headers: {X-Agent-Plan: free}}}\` adds headers, which start with \`X-Agent-\` |
| \`block\` | answers with a page, or problem+json for programs; \`{block: {status: 403, title: …, body: …}}\`, status 401, 403, 404, 429, 451 or 503 |
| \`rate_limit\` | \`{rate_limit: {per: agent, requests: 10, window: 1m, burst: 20, then: block}}\`: forwards up to so many, evenly; \`per\` agent, fingerprint or address; over the limit \`then\`, \`block\` (429) unless it is \`{block: …}\` or \`{tarpit: …}\`. Counted by each worker |
| \`tarpit\` | \`{tarpit: {delay: 10s, connections_max: 100}}\`: holds the request, then blocks it; beyond so many at once it blocks at once |
| \`redirect\` | \`{redirect: {to: /docs, status: 302}}\`: to a path or a URL; status 302, 303, 307 or 308 |
| \`route\` | \`{route: {upstream: name}}\`: forwards, tagged, to another upstream |
`

if (import.meta.main) writeFileSync(new URL('../../config/README.md', import.meta.url), readme())
