/** The picture itself, drawn on a canvas: eight thousand cards take a few milliseconds. */
import { type Board, type BoardNode, colourOf, conditionOf, ownerOf, type Palette, type View } from "./board";
import { cornerOf, type Layout, type Spot } from "./layout";

export interface Picture {
  board: Board;
  nodes: readonly BoardNode[];
  layout: Layout;
  view: View;
  palette: Palette;
  tones: ReadonlyMap<string, string>; // of owners
  text: string;
  quiet: string;
  warn: string;
  spot: Spot | null;
  only: string | null | undefined; // whose cards stand out; undefined: everybody's
}

export function draw(context: CanvasRenderingContext2D, picture: Picture): void {
  const { nodes, layout } = picture;
  context.clearRect(0, 0, layout.width, layout.height);
  context.textBaseline = "middle";
  context.font = `${layout.row >= 16 ? 12 : 10}px ui-monospace, Menlo, Consolas, monospace`;
  nodes.forEach((node, place) => {
    drawName(context, picture, node, place);
    node.cards.forEach((_, card) => drawCard(context, picture, { node: place, card }));
  });
  if (picture.spot) drawFrame(context, picture, picture.spot);
}

function drawName(context: CanvasRenderingContext2D, picture: Picture, node: BoardNode, place: number): void {
  const { layout } = picture;
  const { x, y } = cornerOf(layout, { node: place, card: 0 });
  const ill = node.state === "lost" || node.cards.some((card) => card.trouble);
  context.fillStyle = ill ? picture.palette.bad : node.state === "ready" ? picture.text : picture.warn;
  context.fillText(shortened(context, node.name, layout.label - 10), x - layout.label, y + layout.cell / 2);
}

/** The end of a name says which machine it is, so the middle is left out. */
function shortened(context: CanvasRenderingContext2D, name: string, width: number): string {
  const most = Math.max(3, Math.floor(width / context.measureText("0").width));
  return name.length <= most ? name : `${name.slice(0, Math.ceil(most / 2) - 1)}…${name.slice(name.length - Math.floor(most / 2))}`;
}

function drawCard(context: CanvasRenderingContext2D, picture: Picture, spot: Spot): void {
  const { board, nodes, layout, palette, view } = picture;
  const node = nodes[spot.node];
  const card = node?.cards[spot.card];
  if (!node || !card) return;
  const { x, y } = cornerOf(layout, spot);
  const { cell } = layout;
  const condition = conditionOf(node, card);
  const dimmed = picture.only !== undefined && ownerOf(card, board.works) !== picture.only;
  context.globalAlpha = dimmed ? 0.25 : 1;
  context.fillStyle = node.state === "ready" ? palette.free : palette.closed;
  context.fillRect(x, y, cell, cell);
  const colour = colourOf(board, node, card, view, palette, picture.tones);
  if (colour) {
    const part = view === "owner" && condition === "used" ? Math.min(1, card.used) : 1;
    const height = Math.max(2, Math.round(cell * part));
    context.fillStyle = colour;
    context.fillRect(x, y + cell - height, cell, height);
  }
  if (condition === "trouble") drawCross(context, x, y, cell, palette.free);
  else if (condition === "free" && cell >= 14) {
    context.strokeStyle = palette.edge;
    context.lineWidth = 1;
    context.strokeRect(x + 0.5, y + 0.5, cell - 1, cell - 1);
  } else if (node.state !== "ready") drawStroke(context, x, y, cell, palette.edge);
  context.globalAlpha = 1;
}

/** Ill cards are crossed and closed ones struck through, so that colour alone says nothing. */
function drawCross(context: CanvasRenderingContext2D, x: number, y: number, cell: number, colour: string): void {
  const inset = cell / 4;
  context.strokeStyle = colour;
  context.lineWidth = Math.max(1, cell / 8);
  context.beginPath();
  context.moveTo(x + inset, y + inset);
  context.lineTo(x + cell - inset, y + cell - inset);
  context.moveTo(x + cell - inset, y + inset);
  context.lineTo(x + inset, y + cell - inset);
  context.stroke();
}

function drawStroke(context: CanvasRenderingContext2D, x: number, y: number, cell: number, colour: string): void {
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(x + 1, y + cell - 1);
  context.lineTo(x + cell - 1, y + 1);
  context.stroke();
}

function drawFrame(context: CanvasRenderingContext2D, picture: Picture, spot: Spot): void {
  const { layout, palette } = picture;
  const { x, y } = cornerOf(layout, spot);
  context.strokeStyle = palette.mark;
  context.lineWidth = 2;
  context.strokeRect(x - 1, y - 1, layout.cell + 2, layout.cell + 2);
}
