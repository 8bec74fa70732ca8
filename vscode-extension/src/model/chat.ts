import type { ChatAnswer, ChatRequest, ToolUse } from '../protocol';

/** More characters a token than this are no answer of the length that was asked for. */
const MOST_CHARACTERS_PER_TOKEN = 8;

/** A model as the editor lists it. */
export interface Listed {
  readonly id: string;
  readonly vendor: string;
  readonly family: string;
  readonly maxInputTokens: number;
}

/** How a model is named in settings and towards the server. */
export function nameOf({ vendor, id }: Listed): string {
  return `${vendor}/${id}`;
}

/** The model of that name or family ("vendor/family"); without a name the one that reads most, which first prompts need. */
export function chosen<Model extends Listed>(models: readonly Model[], name: string): Model | undefined {
  if (name !== '') {
    return (
      models.find((each) => nameOf(each) === name) ?? models.find((each) => `${each.vendor}/${each.family}` === name)
    );
  }
  return [...models].sort((a, b) => b.maxInputTokens - a.maxInputTokens)[0];
}

/** What a piece of a model's answer is, as far as it counts here. */
export type Piece = { readonly text: string } | { readonly call: ToolUse } | undefined;

export type Arrived = Pick<ChatAnswer, 'text' | 'calls' | 'problem'>;

/**
 * Puts an answer together as it arrives, and stops reading one that is longer than was asked for. Where nothing of it
 * came, the error is thrown on: providers refuse that way, too.
 */
export async function collect(
  pieces: AsyncIterable<Piece>,
  maxTokens: number,
  told: (error: unknown) => string,
): Promise<Arrived> {
  const calls: ToolUse[] = [];
  let text = '';
  let characters = 0;
  try {
    for await (const piece of pieces) {
      if (piece !== undefined && 'text' in piece) {
        text += piece.text;
        characters += piece.text.length;
      } else if (piece !== undefined) {
        calls.push(piece.call);
        characters += JSON.stringify(piece.call.input ?? null).length;
      }
      if (characters > maxTokens * MOST_CHARACTERS_PER_TOKEN) {
        return { text: '', calls: [], problem: 'was longer than it may be' };
      }
    }
  } catch (error) {
    if (characters === 0) {
      throw error;
    }
    return { text, calls: [], problem: `broke off (${told(error)})` };
  }
  return { text, calls, problem: null };
}

/** What a provider's error is for the user, in one sentence. `code` is that of a LanguageModelError. */
export function refusal(model: string, code: string | undefined, message: string): string {
  const why = message.trim().replace(/\.$/, '');
  switch (code) {
    case 'NoPermissions':
      return `${model} was not asked: the editor asks whether CuteSmith may use it, and the answer was no.`;
    case 'Blocked':
      return `${model} cannot be asked now (${why}): look at your plan's quota, or choose another model with cutesmith.editorModel.`;
    case 'NotFound':
      return `${model} is not there any more: choose another model with cutesmith.editorModel.`;
    default:
      return `${model} cannot be asked (${why || 'its provider gives no reason'}): look at the log of its extension.`;
  }
}

/** Whether a model may have worked on what it was asked, though its provider answers with an error of this code. */
export function mayHaveBegun(code: string | undefined): boolean {
  return code === undefined || !['NoPermissions', 'Blocked', 'NotFound'].includes(code);
}

/** Why there is no model to ask, in one sentence. */
export function nothingToAsk(name: string, models: readonly Listed[]): string {
  if (models.length === 0) {
    return 'This editor has no language model: sign in to GitHub Copilot or another provider, or set cutesmith.modelProvider to "anthropic".';
  }
  const known = models.slice(0, 5).map(nameOf).join(', ');
  return `cutesmith.editorModel names ${name}, which this editor does not have: choose one of ${known}.`;
}

/** What is too long for the model, or undefined. */
export function tooLong(model: string, tokens: number, most: number): string | undefined {
  return tokens > most
    ? `${model} reads ${most} tokens at most, and this question has ${tokens}: choose a larger model with cutesmith.editorModel.`
    : undefined;
}

/** The whole of a question, as its tokens are counted. */
export function textOf({ system, user, tools }: ChatRequest): string {
  return [system, user, JSON.stringify(tools)].join('\n\n');
}
