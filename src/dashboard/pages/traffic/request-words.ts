import type { Request } from '../../api/operations.ts'

/** The name of the agent or the program, or who signed the request. */
export function whoOf({ agent_id, agent_name, software_id, software_name, identity }: Request): string {
  return agent_name ?? agent_id ?? software_name ?? software_id ?? identity ?? ''
}

export function actionText({ rule, action }: Request): string {
  return rule === 'otherwise' ? action : `${action}: ${rule}`
}

/** Where the deciding rule stands, as a sentence. */
export function layerText({ layer, app }: Request): string | null {
  if (layer === null) return null
  return layer === 'app' ? `in the policy of the app ${app}` : `among the ${layer} rules of the organisation`
}

/** An autonomous system: its name, and its number. */
export function networkText({ asn, name }: { readonly asn: number; readonly name: string | null }): string {
  return name === null ? `AS${asn}` : `${name} (AS${asn})`
}
