import { boundByDpop } from './credentials.ts'
import { walk } from './walk.ts'

walk('an access token of OAuth, bound by DPoP', boundByDpop)
