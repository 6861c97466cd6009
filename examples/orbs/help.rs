//! The text at the bottom left: the field, the culling and the keys.

use super::{
    cli::{Meshlets, Peer},
    fly::Rebuild,
    scene::Field,
};
use bevy::{input::common_conditions::input_just_pressed, prelude::*};
use bevy_gpu_culling::prelude::{CullingReport, FreezeCulling};

const FLY: &str =
    "W A S D Q E fly, Shift faster, right mouse button or G looks around, wheel sets the speed";
const PLUGIN_KEYS: &str = "F freezes culling, L levels of detail, O occlusion, I more or fewer numbers, T next tier, C next compaction, + - twice or half the orbs, H hides this";
const MESHLET_KEYS: &str = "M colors meshlets, ";
const PEER_KEYS: &str = "+ - twice or half the orbs, H hides this";
/// A page is closed by the browser.
const QUIT_KEY: &str = if cfg!(target_arch = "wasm32") {
    ""
} else {
    ", Esc quits"
};

/// Adds the text.
pub struct HelpPlugin;

impl Plugin for HelpPlugin {
    fn build(&self, app: &mut App) {
        app.add_systems(Startup, spawn).add_systems(
            Update,
            (write, hide.run_if(input_just_pressed(KeyCode::KeyH))),
        );
    }
}

#[derive(Component)]
struct HelpText;

fn spawn(mut commands: Commands) {
    commands.spawn((
        HelpText,
        Text::default(),
        TextFont {
            font_size: FontSize::Px(13.0),
            ..default()
        },
        TextColor(Color::srgb(0.85, 0.88, 0.95)),
        BackgroundColor(Color::srgba(0.02, 0.02, 0.05, 0.7)),
        Node {
            position_type: PositionType::Absolute,
            left: px(12),
            bottom: px(10),
            padding: UiRect::all(px(6)),
            border_radius: BorderRadius::all(px(4)),
            ..default()
        },
    ));
}

fn hide(mut texts: Query<&mut Visibility, With<HelpText>>) {
    for mut visibility in &mut texts {
        *visibility = if *visibility == Visibility::Hidden {
            Visibility::Inherited
        } else {
            Visibility::Hidden
        };
    }
}

fn write(
    field: Res<Field>,
    report: Option<Res<CullingReport>>,
    rebuild: Option<Res<Rebuild>>,
    frozen: Query<(), With<FreezeCulling>>,
    mut texts: Query<&mut Text, With<HelpText>>,
) {
    let making = if rebuild.is_some() {
        ", making the next field ..."
    } else {
        ""
    };
    let text = match (field.peer, report) {
        (None, Some(report)) => {
            let (_, visible) = report.cameras();
            let tier = report
                .tier
                .map_or_else(|| "none".to_owned(), |tier| tier.to_string());
            let frozen = if frozen.is_empty() {
                ""
            } else {
                ", FROZEN: fly out to see what was kept"
            };
            let meshlets = match field.meshlets {
                Some(Meshlets::Parts) => MESHLET_KEYS,
                Some(Meshlets::Whole) | None => "",
            };
            format!(
                "{} orbs, {} visible, tier {tier}, {}{frozen}{making}\n{FLY}\n{meshlets}{PLUGIN_KEYS}{QUIT_KEY}",
                grouped(field.count.into()),
                grouped(visible),
                report.compaction
            )
        }
        (Some(Peer::Bevy) | None, _) => {
            format!(
                "{} orbs, drawn by Bevy, one entity per orb{making}\n{FLY}\n{PEER_KEYS}{QUIT_KEY}",
                grouped(field.count.into())
            )
        }
    };
    for mut shown in &mut texts {
        if shown.0 != text {
            shown.0.clone_from(&text);
        }
    }
}

/// A number with a space between groups of three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.char_indices() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn digits_come_in_groups_of_three() {
        let texts = [0, 999, 1000, 100_000, 16_777_216].map(grouped);
        assert_eq!(texts, ["0", "999", "1 000", "100 000", "16 777 216"]);
    }
}
