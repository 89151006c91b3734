import { agentIdentity } from './credentials.ts'
import { walk } from './walk.ts'

walk('an Agent Identity', agentIdentity)
