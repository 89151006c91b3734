type Values = Readonly<Record<string, unknown>>

/**
 * Fills `/agents/{agent_id}` to `/v1/agents/curl?page=2`. Undefined and empty values are left out of the
 * query.
 */
export function addressOf(template: string, path: Values = {}, query: Values = {}): string {
  const filled = template.replace(/\{([^}]+)\}/g, (_, name: string) => encodeURIComponent(String(path[name])))
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== null && value !== '') parameters.set(name, String(value))
  const text = parameters.toString()
  return `${PREFIX}${filled}${text === '' ? '' : `?${text}`}`
}

const PREFIX = '/v1'
